"""A DataFrame on its way into a table: tasks write fragments, the driver makes one commit.

```
driver   plan_write: the table's version, its schema, a token
tasks      batches -> cast to the table's types, by name -> data files -> encoded fragments, as the task's message
driver   commit: all fragments of the tasks that won, in one transaction that carries the token
driver   abort: deletes the files of tasks that finished where others failed
```

Spark calls `abort` after a commit that failed as well, in another process. What became of such a commit is known to
`commit` alone, which has deleted the files then if they are nobody's; `abort` leaves them, for they may be a version's.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from esker._native.table import Manifest, Schema
from esker.exceptions import AlreadyExistsError, UnsupportedError
from esker.spark.cast import cast_batch
from esker.spark.matching import check_append, replacing_schema
from esker.spark.options import TableAddress, WriteOptions
from esker.spark.table import WritePlan, latest_manifest
from esker.spark.types import has_map
from esker.spark.wording import in_words_of_spark
from esker.storage_version import storage_version

__all__ = ["EskerWriter", "FragmentsMessage", "may_discard", "plan_write"]


@dataclass(frozen=True)
class FragmentsMessage(WriterCommitMessage):
    """What a task tells the driver: the fragments that it wrote, encoded."""

    fragments: tuple[bytes, ...]


class EskerWriter(DataSourceArrowWriter):
    """Writes a DataFrame to a table.

    Args:
        address: The table.
        schema: The DataFrame's schema.
        overwrite: Whether the DataFrame takes the place of the table's rows.
        options: Sizes of files and types of a new table.
    """

    def __init__(self, address: TableAddress, schema: StructType, overwrite: bool, options: WriteOptions) -> None:
        # Spark pickles this object for the tasks and for the commit alike: the plan, its token in it, is one for all.
        self._plan = plan_write(address, schema, overwrite, options)

    @in_words_of_spark()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> FragmentsMessage:
        """Writes the rows of one task as data files."""
        if self._plan is None:
            return FragmentsMessage(())
        wanted = self._plan.arrow_schema
        return FragmentsMessage(self._plan.write(cast_batch(batch, wanted) for batch in iterator))

    @in_words_of_spark()
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:  # type: ignore[override, unused-ignore]
        """Makes the fragments of all tasks the table's next version."""
        if self._plan is None:
            return
        plan, fragments = self._plan, _fragments(messages)
        with plan.staged(fragments) as staged:
            try:
                plan.commit(fragments, staged)
            except AlreadyExistsError:
                # Two appends may make the table at once; the later one goes on top of the earlier if the schemas are
                # equal.
                if plan.options.save_mode == "ignore":
                    staged.discard()
                elif plan.options.save_mode == "error" or plan.join(fragments, staged) is None:
                    raise

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:  # type: ignore[override, unused-ignore]
        """Deletes the data files of the tasks that finished, if others did not: then nothing was committed."""
        if self._plan is not None and may_discard(messages):
            self._plan.staged(_fragments(messages)).discard()


def may_discard(messages: Sequence[WriterCommitMessage | None]) -> bool:
    """Whether a write that is aborted was never committed: Spark commits once all tasks have sent a message.

    Example:
        >>> from pyspark.sql.datasource import WriterCommitMessage
        >>> from esker.spark.writer import may_discard
        >>> may_discard([WriterCommitMessage(), None]), may_discard([WriterCommitMessage()])
        (True, False)
    """
    return any(message is None for message in messages)


@in_words_of_spark()
def plan_write(address: TableAddress, schema: StructType, overwrite: bool, options: WriteOptions) -> WritePlan | None:
    """Fixes a write on the driver, and refuses there what could only fail later.

    Returns:
        The plan, None if there is nothing to do (save mode "ignore", and a table is there).

    Raises:
        AlreadyExistsError: Save mode "error", and a table is there.
        SchemaMismatchError: The DataFrame does not fit the table that it is appended to.
        UnsupportedError: A column has a type that a table cannot hold, or the table is from a newer writer.
    """
    options.check_format("lance", address.uri)
    manifest = latest_manifest(address)
    if manifest is not None and not overwrite:
        if options.save_mode == "ignore":
            return None
        if options.save_mode == "error":
            raise AlreadyExistsError(
                f'a table at {address.uri} exists already; use mode="append" or mode="overwrite"', uri=address.uri
            )
    plan = WritePlan(
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
    )
    if manifest is not None:
        manifest.check_writable()
    _check_maps(plan.arrow_schema, plan.data_storage_version)
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
        # The table's own schema, with its field ids: those of a new one need not be the same.
        check_append(schema, pa.schema(manifest.schema), address.uri)
        return manifest.schema
    kept = None if manifest is None or options.overwrite_schema else pa.schema(manifest.schema)
    return Schema.from_arrow(replacing_schema(schema, kept, options.vectors))


def _fragments(messages: Sequence[WriterCommitMessage | None]) -> list[bytes]:
    # A task that failed leaves None in place of a message.
    return [data for message in messages if isinstance(message, FragmentsMessage) for data in message.fragments]
