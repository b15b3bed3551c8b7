"""The clean-up of a dataset, under pylance's names."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from ..exceptions import InvalidArgumentError
from ..lance.cleanup.explanation import CleanupExplanation, CleanupStats
from ..lance.cleanup.policy import CleanupPolicy
from ..lance.cleanup.run import cleanup, explain
from ..lance.handle import DatasetHandle
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
        """Removes old versions, the files that only they are made of, and what failed commits left behind.

        Stays, whatever the arguments say: the version that this dataset shows and all later ones, the latest version,
        tagged versions, versions that branches start from, detached versions, and every file that one of these is made
        of. A file that no version ever referred to stays for 7 days: a writer at work may be about to commit it.

        Args:
            older_than: Removes only versions older than this; two weeks where nothing else is said. Zero is no
                condition.
            retain_versions: Keeps the newest so many.
            delete_unverified: Removes files that no version ever referred to whatever their age. Only while nobody
                writes: what a writer has staged is such a file.
            error_if_tagged_old_versions: Whether it is an error that a tagged version would go; else it stays silently.
            delete_rate_limit: Deletions a second, at most.
            versions: Removes only these versions. All conditions must hold together.
            delete_concurrency: Deletions at a time, at most.
            progress: Called with the files removed so far, or an `esker.progress.Progress`.

        Returns:
            Counts of what is gone.

        Raises:
            TaggedVersionsError: A tagged version would go.
            InvalidArgumentError: A number that must be positive is not.
            CorruptFileError: A manifest, a tag or a branch cannot be read. Nothing is removed then.

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
        log = self._table.writable_log(durable=False)
        return cleanup(log, self._table.manifest, policy, as_progress(progress, "files"))

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
            older_than: See `cleanup_old_versions`, as for the others that it has too.
            retain_versions: See there.
            delete_unverified: See there.
            error_if_tagged_old_versions: See there.
            delete_rate_limit: See there; of no effect here.
            versions: See there.
            include_files: Whether to name the files, each with its size and the reason why it goes.
            max_files: How many of them are named; None for all.

        Raises:
            InvalidArgumentError: A number that must be positive is not.
            TaggedVersionsError: A tagged version would go.

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
            raise InvalidArgumentError(f"expected max_files > 0, found {max_files}")
        policy = CleanupPolicy(
            older_than=older_than,
            retain_versions=retain_versions,
            versions=versions,
            delete_unverified=delete_unverified,
            error_if_tagged=error_if_tagged_old_versions,
            rate_limit=delete_rate_limit,
        )
        log = self._table.writable_log(durable=False)
        return explain(log, self._table.manifest, policy, include_files=include_files, max_files=max_files)
