"""Writes a table: stages the data files, then commits them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa

from ...arrow.incoming import ReaderLike
from ...commit.limits import DEFAULT_COMMIT_TIMEOUT, commit_limits
from ...commit.loop import DEFAULT_MAX_RETRIES, Backoff, commit
from ...commit.orphans import StagedFiles
from ...commit.protocol import CommitLock
from ...exceptions import AlreadyExistsError
from ..cleanup.automatic import cleaned_up
from ..commit import LanceCommit, is_applied
from ..log import NamingScheme
from ..operation import application_properties, merge_message
from ..version import TableVersion
from .newcomer import append_to_newcomer
from .request import DEFAULTS, WriteArguments, WriteRequest, open_for, refuse_unknown
from .staging import stage


@dataclass(frozen=True, kw_only=True)
class WriteCommit:
    """How a write is committed.

    Attributes:
        lock: Held around the commit; by default the lock that the table was opened with.
        v2_names: Whether a new table has V2 manifest names.
        stable_row_ids: Whether a new table has stable row ids.
        message: The commit message, a property of the transaction.
        properties: Further properties of the transaction.
        application: An application's id and the number of this write among its writes: each is committed once.
        max_retries: Attempts after the first.
        timeout: For all attempts together; None for no limit.
        backoff: The pauses between attempts.
    """

    lock: CommitLock | None = None
    v2_names: bool = True
    stable_row_ids: bool = False
    message: str | None = None
    properties: dict[str, str] | None = None
    application: tuple[str, int] | None = None
    max_retries: int = DEFAULT_MAX_RETRIES
    timeout: timedelta | None = DEFAULT_COMMIT_TIMEOUT
    backoff: Backoff | None = None

    def __post_init__(self) -> None:
        if self.lock is not None and not callable(self.lock):
            raise TypeError(f"commit_lock must be a function, found {type(self.lock).__name__}")

    @classmethod
    def of(cls, given: WriteArguments) -> WriteCommit:
        """The commit settings among the arguments of `write_dataset`."""
        given = {**DEFAULTS, **given}
        return cls(
            lock=given["commit_lock"],
            v2_names=given["enable_v2_manifest_paths"],
            stable_row_ids=bool(given["enable_stable_row_ids"]),
            message=given["commit_message"],
            properties=given["transaction_properties"],
            application=given["application"],
            max_retries=given["max_retries"],
            timeout=given["commit_timeout"],
            backoff=given["backoff"],
        )

    def noted(self) -> dict[str, str] | None:
        """The properties of the transaction."""
        return application_properties(self.application, merge_message(self.message, self.properties))


def write_given(
    table: object, data: ReaderLike, schema: pa.Schema | None, mode: str, given: WriteArguments
) -> TableVersion:
    """Creates, appends to or overwrites a table, with the arguments of `write_dataset`.

    Args:
        table: A path, a URI or a dataset.
        data: The rows.
        schema: Their column types, if the data do not have any.
        mode: "create", "append" or "overwrite".
        given: All other arguments.
    """
    refuse_unknown("write_dataset", given)
    how = WriteCommit.of(given)
    target = open_for(table, given)
    return write_table(WriteRequest.of(target, data, schema, mode, given), how)


def write_table(request: WriteRequest, how: WriteCommit) -> TableVersion:
    """Creates, appends to or overwrites a table and returns the new version. See `write_dataset`."""
    target = request.target
    lock = how.lock or target.lock
    properties = how.noted()
    if how.application is not None and target.base is not None:
        latest = target.log.open()[0]
        if is_applied(latest, *how.application):
            return target.at(latest, lock)
    staged = stage(request)
    with StagedFiles() as files:
        staged.tell(files)
        staged.report(request.progress)
        limits = commit_limits(how.max_retries, how.timeout, how.backoff)
        scheme: NamingScheme = "V2" if how.v2_names else "V1"
        first = LanceCommit(
            target.log,
            staged.transaction(properties),
            data_storage_version=staged.data_storage_version,
            enable_stable_row_ids=how.stable_row_ids,
            # An append to a missing table creates it; if another writer does so first, ours appends to that table.
            create=target.base is None and staged.mode != "overwrite",
            scheme=scheme,
            lock=lock,
            base=target.base,
        )
        try:
            version = commit(first, limits=limits, staged=files)
        except AlreadyExistsError:
            if staged.mode != "append" or target.base is not None:
                raise
        else:
            return cleaned_up(target.at(first.committed(version), lock))
        second = append_to_newcomer(
            target.log,
            staged.fragments,
            staged.schema,
            staged.data_storage_version,
            properties=properties,
            scheme=scheme,
            lock=lock,
        )
        version = commit(second, limits=limits, staged=files)
        return cleaned_up(target.at(second.committed(version), lock))
