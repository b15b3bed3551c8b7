"""Writes a DataFrame to a Lance table: tasks write fragments, the driver makes one commit.

```
driver   plan_write: the base version, the schema, a token
tasks      batches -> cast to the table's types, by name -> data files -> encoded fragments, as the task's message
driver   commit: all fragments of the successful tasks, in one transaction with the token
driver   abort: deletes the files of tasks that finished, if other tasks failed
```

Spark also calls `abort` after a failed commit, in another process. Only `commit` knows the outcome of the commit, and
has deleted the staged files if it was refused; `abort` keeps them, since a version may refer to them.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from esker._native.schema import Schema
from esker._native.table import Manifest
from esker.arrow.json_columns import shown_schema, stored_batch, stored_schema
from esker.exceptions import (
    AlreadyExistsError,
    CommitConflictError,
    EskerError,
    InvalidArgumentError,
    UnsupportedError,
)
from esker.lance.log import entry_of
from esker.lance.write.compression import compression_of
from esker.spark.cast import cast_batch
from esker.spark.matching import check_append, check_vectors, renamed, replacing_schema
from esker.spark.options import TableAddress, WriteOptions
from esker.spark.spelling import spelled_as
from esker.spark.table import FragmentPlan, applications_of, latest_manifest
from esker.spark.types import has_map
from esker.spark.wording import in_words_of_spark
from esker.spark.worker_task import MadeInWorkers
from esker.storage_version import storage_version
from esker.store.branch_places import check_no_branch_belongs
from esker.store.staging import Handover, hand_over

__all__ = ["EskerWriter", "FragmentsMessage", "may_discard", "plan_write"]


@dataclass(frozen=True)
class FragmentsMessage(WriterCommitMessage):
    """The message from a task to the driver: its fragments, encoded, and for a branch what its store has staged."""

    fragments: tuple[bytes, ...]
    staged: Handover = ()


class EskerWriter(MadeInWorkers, DataSourceArrowWriter):
    """Writes a DataFrame to a table.

    Args:
        address: The table.
        schema: The DataFrame's schema.
        overwrite: Whether the DataFrame replaces the table's rows.
        options: Sizes of files and types of a new table.
    """

    def __init__(self, address: TableAddress, schema: StructType, overwrite: bool, options: WriteOptions) -> None:
        # Spark pickles this object for the tasks and for the commit: all of them share the plan and its token.
        self.address = address
        self._plan = plan_write(address, schema, overwrite, options)

    @in_words_of_spark()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> FragmentsMessage:
        """Writes the rows of one task as data files."""
        if self._plan is None or self._plan.is_known_to_be_applied:
            return FragmentsMessage(())
        wanted = self._plan.arrow_schema
        # JSON comes as text, as reads show it.
        shown = shown_schema(wanted)
        named = (batch.rename_columns(spelled_as(batch.schema.names, wanted.names)) for batch in iterator)
        store = self._plan.store()
        fragments = self._plan.write(store, (_stored(cast_batch(batch, shown), wanted) for batch in named))
        return FragmentsMessage(fragments, hand_over(store))

    @in_words_of_spark()
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:  # type: ignore[override, unused-ignore]
        """Commits the fragments of all tasks as the table's next version."""
        if self._plan is None:
            return
        plan, fragments = self._plan, _fragments(messages)
        if plan.application is not None and not fragments and not plan.replace:
            # A batch of a stream without rows: there is nothing that could be there twice.
            return
        log = plan.log(_handed_over(messages))
        with plan.staged(log.store, fragments) as staged:
            if plan.is_applied():
                staged.discard()
                return
            try:
                plan.check_base()
            except CommitConflictError:
                if plan.options.save_mode != "ignore":
                    raise
                staged.discard()
                return
            try:
                plan.commit(log, fragments, staged)
            except AlreadyExistsError:
                # Another writer has created the table meanwhile: append to it if the schemas are equal.
                if plan.options.save_mode == "ignore":
                    staged.discard()
                elif plan.options.save_mode == "error" or plan.join(log, fragments, staged) is None:
                    raise

    def numbered(self, application: tuple[str, int]) -> EskerWriter:
        """The same write as one batch of a stream, which is committed once.

        Args:
            application: The id of the stream, and the number of the batch.
        """
        made = copy.copy(self)
        made._plan = None if self._plan is None else replace(self._plan, application=application)
        return made

    @property
    def options(self) -> WriteOptions | None:
        """How it writes; None if there is nothing to do."""
        return None if self._plan is None else self._plan.options

    def joined(self, messages: Sequence[WriterCommitMessage | None], most: int) -> list[WriterCommitMessage | None]:
        """The same rows in fewer files: the smallest are written anew as one.

        Args:
            messages: What the tasks have told.
            most: How many files there may be.
        """
        fragments = _fragments(messages)
        if self._plan is None or len(fragments) <= most:
            return list(messages)
        log = self._plan.log(_handed_over(messages))
        kept, made = self._plan.joined(log, fragments, most)
        return [FragmentsMessage((*kept, *made), hand_over(log.store))]

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:  # type: ignore[override, unused-ignore]
        """Deletes the data files of the tasks that finished, if other tasks failed: then nothing was committed."""
        if self._plan is not None and may_discard(messages):
            # What ended the write is told, not that its branch is gone or cannot be asked: what is left is garbage.
            with suppress(EskerError, OSError):
                self._plan.staged(self._plan.store(), _fragments(messages)).discard()


def may_discard(messages: Sequence[WriterCommitMessage | None]) -> bool:
    """Whether a write that is aborted was never committed: Spark commits only when all tasks have sent a message.

    Example:
        >>> from pyspark.sql.datasource import WriterCommitMessage
        >>> from esker.spark.writer import may_discard
        >>> may_discard([WriterCommitMessage(), None]), may_discard([WriterCommitMessage()])
        (True, False)
    """
    return any(message is None for message in messages)


@in_words_of_spark()
def plan_write(
    address: TableAddress, schema: StructType, overwrite: bool, options: WriteOptions
) -> FragmentPlan | None:
    """Plans a write on the driver, and refuses there what would only fail later in the tasks.

    Returns:
        The plan, None if there is nothing to do (the save mode is "ignore", and there is a table).

    Raises:
        AlreadyExistsError: The save mode is "error", and there is a table.
        NotFoundError: There is no table, and a branch of another one belongs there.
        InvalidArgumentError: The DataFrame has no columns, or one whose name a table cannot have.
        SchemaMismatchError: The DataFrame does not fit the table that it is appended to.
        UnsupportedError: A column has a type that a table cannot hold, or the table is from a newer writer.
    """
    options.check_format("lance", address.uri)
    manifest = latest_manifest(address)
    if manifest is None:
        check_no_branch_belongs(address.uri, storage_options=address.storage_options)
    if manifest is not None and not overwrite:
        if options.save_mode == "ignore":
            return None
        if options.save_mode == "error":
            raise AlreadyExistsError(
                f'a Lance table at {address.uri} exists already; use mode="append" or mode="overwrite"',
                uri=address.uri,
            )
    if not schema.fields:
        # A table has as many rows as its columns: these would be none.
        raise InvalidArgumentError("expected a DataFrame of at least one column, found none; select some")
    plan = FragmentPlan(
        address=address,
        token=str(uuid.uuid4()),
        read_version=0 if manifest is None else manifest.version,
        replace=manifest is None or overwrite,
        create=manifest is None and not overwrite,
        schema=_planned_schema(manifest, address, schema, overwrite, options),
        options=options,
        data_storage_version=storage_version(
            options.data_storage_version, manifest, "overwrite" if overwrite else "append"
        ),
        compression=compression_of(options.compression, manifest),
        applications=applications_of(manifest),
        entry="" if manifest is None else entry_of(manifest),
    )
    if manifest is not None:
        manifest.check_writable()
    _check_maps(plan.arrow_schema, plan.data_storage_version)
    if plan.replace:
        # Without rows nothing is put, and types that no file can hold are refused as in a task.
        plan.write(plan.store(), ())
    return plan


def _check_maps(schema: pa.Schema, version: str) -> None:
    for field in schema:
        if version != "2.2" and has_map(field.type):
            raise UnsupportedError(
                f"column {field.name!r} has a map, which files of version {version} cannot hold: set the option "
                "dataStorageVersion to 2.2, or make it an array of structs",
                column=field.name,
                type=str(field.type),
            )


def _planned_schema(
    manifest: Manifest | None, address: TableAddress, schema: StructType, overwrite: bool, options: WriteOptions
) -> Schema:
    if manifest is not None and not overwrite:
        # The table's own schema, since a new one may get other field ids.
        there = shown_schema(pa.schema(manifest.schema))
        check_append(renamed(schema, there.names), there, address.uri)
        check_vectors(options.vectors or {}, there)
        return manifest.schema
    kept = None if manifest is None or options.overwrite_schema else shown_schema(pa.schema(manifest.schema))
    made = Schema.from_arrow(stored_schema(replacing_schema(schema, kept, options.vectors)))
    # The commit would refuse the same, after all tasks have run.
    made.check_column_names(None if manifest is None else manifest.schema)
    return made


def _stored(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch as files hold it: JSON as JSONB."""
    made = stored_batch(batch)
    return batch if made is batch else pa.RecordBatch.from_arrays(made.columns, schema=schema)


def _fragments(messages: Sequence[WriterCommitMessage | None]) -> list[bytes]:
    # A task that failed leaves None in place of a message.
    return [data for message in messages if isinstance(message, FragmentsMessage) for data in message.fragments]


def _handed_over(messages: Sequence[WriterCommitMessage | None]) -> Handover:
    return tuple(chain.from_iterable(message.staged for message in messages if isinstance(message, FragmentsMessage)))
