"""Tables without rows: `DeltaTable.create`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from ...exceptions import AlreadyExistsError, CommitStateUnknownError, IOFailedError
from ..definition.constraints import Constraints
from ..definition.table_state import TableState
from ..exceptions import AppendOnlyError
from ..log.commit import CommitRequest, DeltaCommit, LogEntry
from ..log.conflict import ReadSet
from ..log.target import WriteTarget
from ..schema import Schema
from .plan import WriteRequest, check_mode
from .replacement import remove_actions


def create_table(target: WriteTarget, schema: Schema, request: WriteRequest, commit: CommitRequest) -> bool:
    """Creates a table without rows, or puts one in the place of another. False if it leaves the one that is there.

    Args:
        target: Where it shall be.
        schema: Its columns.
        request: The mode, and what the table is called, partitioned by and configured with.
        commit: What the caller wants of the commit.

    Raises:
        AlreadyExistsError: There is a table.
        InvalidArgumentError: The one that is there is append-only.

    Example:
        `create_table(WriteTarget.of("t", None), schema, WriteRequest(mode="error"), CommitRequest())`
    """
    check_mode(request.mode)
    if target.snapshot is not None:
        if request.mode == "ignore":
            return False
        if request.mode != "overwrite":
            raise AlreadyExistsError(
                f'a Delta table at {target.uri} exists already; use mode="overwrite" or mode="ignore"', uri=target.uri
            )
    rerun = None
    if request.mode == "overwrite":

        def rerun(version: int) -> DeltaCommit:
            return _create_commit(target.at(version), schema, request, commit)

    try:
        _create_commit(target, schema, request, commit).run(rerun=rerun)
    except AlreadyExistsError:
        # Another writer created the table meanwhile.
        if request.mode != "ignore":
            raise
        return False
    return True


@contextmanager
def telling_that_it_was_created(uri: str) -> Iterator[None]:
    """Says of an error of the store that it came after a table had been created.

    Raises:
        CommitStateUnknownError: The store failed.
    """
    try:
        yield
    except IOFailedError as error:
        raise CommitStateUnknownError(
            f"{error}; the table at {uri} was created, but could not be opened: open it, and do not create it again",
            uri=uri,
        ) from error


def _create_commit(target: WriteTarget, schema: Schema, request: WriteRequest, commit: CommitRequest) -> DeltaCommit:
    before, removes = None, []
    if target.snapshot is not None:
        before = TableState.of(target.snapshot)
        before.check_writable()
        if before.is_append_only and target.snapshot.num_files:
            raise AppendOnlyError(target.uri, "replacing it would remove rows")
        removes = remove_actions(target.snapshot, target.snapshot.select(target.store))
    columns = list(request.partition_columns or [])
    after = TableState.new(
        schema,
        columns,
        name=request.name,
        description=request.description,
        configuration=request.configuration,
        replaced=before,
    )
    Constraints(after.schema, after.configuration, after.protocol, is_new=True)
    entry = LogEntry(
        "CREATE TABLE" if before is None else "CREATE OR REPLACE TABLE",
        {
            "isManaged": "false",
            "description": request.description,
            "partitionBy": json.dumps(columns, separators=(",", ":")),
            "properties": json.dumps(after.configuration, separators=(",", ":")),
        },
        [*after.actions_after(before), *(("remove", action) for action in removes)],
        ReadSet(whole_table=before is not None),
    )
    return DeltaCommit(target, entry, commit)
