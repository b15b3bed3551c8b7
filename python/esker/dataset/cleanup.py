"""The methods of `LanceDataset` that clean up, under pylance's names."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from ..exceptions import InvalidArgumentError
from ..lance.cleanup.explanation import CleanupExplanation, CleanupStats
from ..lance.cleanup.policy import CleanupPolicy
from ..lance.cleanup.run import cleanup, explain
from ..lance.handle import DatasetHandle
from ..lance.log import LanceLog
from ..lance.refs.places import log_of
from ..progress import Progress, as_progress


class CleanupApi(DatasetHandle):
    """The methods of `LanceDataset` that clean up."""

    def cleanup_old_versions(
        self,
        older_than: timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = True,
        delete_rate_limit: int | None = None,
        versions: list[int] | None = None,
        delete_concurrency: int | None = None,
        progress: Progress | Callable[[int], object] | None = None,
    ) -> CleanupStats:
        """Removes old versions, the files that only they refer to, and orphans of failed commits.

        In any case it keeps the version that this dataset shows and all later ones, the latest version, tagged
        versions, versions that branches start from, detached versions, and all files that these refer to. It keeps a
        file that no version ever referred to for 7 days, since a writer may be about to commit it.

        Args:
            older_than: Removes only versions older than this; two weeks if no other condition is given. Zero is no
                condition.
            retain_versions: How many of the newest versions to keep.
            delete_unverified: Whether to remove files that no version ever referred to whatever their age. Use it only
                while nobody writes: the staged files of a writer are such files.
            error_if_tagged_old_versions: Whether it is an error if a tag keeps a version that would be removed
                otherwise; if False, it is kept silently.
            delete_rate_limit: The maximum number of deletions per second.
            versions: Removes only these versions. Only versions that meet all conditions are removed.
            delete_concurrency: The maximum number of concurrent requests.
            progress: Called with the number of files removed so far, or an `esker.progress.Progress`.

        Returns:
            Counts of what was removed.

        Raises:
            TaggedVersionsError: A tag keeps a version that would be removed otherwise.
            InvalidArgumentError: A number is not positive, or `versions` is empty.
            CorruptFileError: A manifest, a tag or a branch cannot be read. Nothing is removed then.
            IOFailedError: The manifest of a version could not be removed. Its files are all there.

        Example:
            >>> import esker, pyarrow as pa
            >>> rows = pa.table({"id": [1]})
            >>> for _ in range(3):
            ...     dataset = esker.write_dataset(rows, "memory://doc-cleanup", mode="overwrite")
            >>> dataset.cleanup_old_versions(retain_versions=1).old_versions
            2
        """
        policy = CleanupPolicy(
            older_than=older_than,
            retain_versions=retain_versions,
            versions=versions,
            delete_unverified=delete_unverified,
            error_if_tagged=error_if_tagged_old_versions,
            rate_limit=delete_rate_limit,
            concurrency=delete_concurrency,
        )
        log, main = self._logs()
        return cleanup(log, self._table.manifest, policy, as_progress(progress, "files"), main=main)

    def _logs(self) -> tuple[LanceLog, LanceLog]:
        """The log to clean up, and that of the main line, which has tags and branches."""
        log = self._table.writable_log(durable=False)
        return log, log if self._manifest.branch is None else log_of(self._table, None, durable=False)

    def explain_cleanup_old_versions(
        self,
        older_than: timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = True,
        delete_rate_limit: int | None = None,
        versions: list[int] | None = None,
        include_files: bool = False,
        max_files: int | None = 1000,
    ) -> CleanupExplanation:
        """What `cleanup_old_versions` would remove now: a dry run, which changes nothing.

        Args:
            older_than: See `cleanup_old_versions`.
            retain_versions: See `cleanup_old_versions`.
            delete_unverified: See `cleanup_old_versions`.
            error_if_tagged_old_versions: See `cleanup_old_versions`.
            delete_rate_limit: See `cleanup_old_versions`; of no effect here.
            versions: See `cleanup_old_versions`.
            include_files: Whether to list the files, each with its size and the reason for its removal.
            max_files: How many files to list at most; None for all.

        Raises:
            InvalidArgumentError: A number is not positive, or `versions` is empty.
            TaggedVersionsError: A tag keeps a version that would be removed otherwise.

        Example:
            >>> import esker, pyarrow as pa
            >>> rows = pa.table({"id": [1]})
            >>> for _ in range(2):
            ...     dataset = esker.write_dataset(rows, "memory://doc-explain", mode="overwrite")
            >>> found = dataset.explain_cleanup_old_versions(retain_versions=1, include_files=True)
            >>> sorted(file.kind for file in found.candidate_files)
            ['data', 'manifest', 'transaction']
        """
        if max_files is not None and max_files <= 0:
            raise InvalidArgumentError(f"expected a positive number: max_files must be positive, found {max_files}")
        policy = CleanupPolicy(
            older_than=older_than,
            retain_versions=retain_versions,
            versions=versions,
            delete_unverified=delete_unverified,
            error_if_tagged=error_if_tagged_old_versions,
            rate_limit=delete_rate_limit,
        )
        log, main = self._logs()
        return explain(log, self._table.manifest, policy, include_files=include_files, max_files=max_files, main=main)
