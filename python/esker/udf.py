"""`BatchUDF`: functions that compute new columns from batches of a table, and checkpoints of their results."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from .exceptions import CorruptFileError, InvalidArgumentError
from .missing import names_of_peer

BatchNumber: TypeAlias = tuple[int, int, int]
"""A batch of a table: the version, the fragment's id, and the number of the batch within the fragment."""


class BatchUDF:
    """A function from a batch to the new columns of its rows, a batch with as many rows.

    Args:
        func: Takes a record batch, returns a record batch (or a pandas data frame).
        output_schema: The columns that it returns; by default those of its first result.
        checkpoint_file: A file of results for a rerun after a failure; see `batch_udf`.

    Example:
        `dataset.add_columns(esker.batch_udf()(lambda batch: pa.record_batch([...], ["new"])))`
    """

    def __init__(
        self,
        func: Callable[[pa.RecordBatch], Any],
        output_schema: pa.Schema | None = None,
        checkpoint_file: str | os.PathLike[str] | None = None,
    ) -> None:
        self.func = func
        self.output_schema = output_schema
        self._kept = None if checkpoint_file is None else KeptResults(checkpoint_file)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The new columns of a batch.

        Raises:
            InvalidArgumentError: The function did not return a batch of as many rows and of the output schema.
        """
        result = self.func(batch)
        if not isinstance(result, pa.RecordBatch):
            try:
                result = pa.RecordBatch.from_pandas(result, schema=self.output_schema, preserve_index=False)
            except (AttributeError, TypeError, pa.ArrowInvalid) as error:
                raise InvalidArgumentError(
                    f"expected the function to return a record batch, found {type(result).__name__}"
                ) from error
        if result.num_rows != batch.num_rows:
            raise InvalidArgumentError(
                f"expected the function to return {batch.num_rows} rows for as many, found {result.num_rows}"
            )
        if self.output_schema is not None:
            try:
                result = result.select(self.output_schema.names)
                # Without a cast to the same types, whose error about a null in a non-nullable field is unclear.
                if result.schema != self.output_schema:
                    result = result.cast(self.output_schema)
            except (KeyError, pa.ArrowInvalid) as error:
                raise InvalidArgumentError(
                    "Output schema of function does not match the expected schema: expected "
                    f"{_columns(self.output_schema)}, found {_columns(result.schema)}"
                ) from error
        return result

    @property
    def keeps_results(self) -> bool:
        """Whether there is a checkpoint file."""
        return self._kept is not None

    def forget(self) -> None:
        """Deletes the checkpoint file. To be called when the results are in the table."""
        if self._kept is not None:
            self._kept.remove()

    def of_batch(self, number: BatchNumber, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The new columns of a batch of a table, from the checkpoint file if they are in it."""
        if self._kept is None:
            return self(batch)
        found = self._kept.get(number)
        if found is None or found.num_rows != batch.num_rows:
            found = self(batch)
            self._kept.put(number, found)
        return found


class KeptResults:
    """The checkpoint file: results of a function by batch, in a SQLite file, which a rerun after a failure reuses.

    Args:
        path: The file. It is created if it is missing.

    Raises:
        CorruptFileError: It is not a checkpoint file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        with closing(self._open()) as file, file:
            file.execute(
                "create table if not exists results"
                " (version int, fragment int, number int, batch blob, primary key (version, fragment, number))"
            )

    def get(self, number: BatchNumber) -> pa.RecordBatch | None:
        """The result for a batch, None if there is none yet."""
        with closing(self._open()) as file:
            query = "select batch from results where version = ? and fragment = ? and number = ?"
            row = file.execute(query, number).fetchone()
        if row is None:
            return None
        try:
            return pa.ipc.open_stream(row[0]).read_next_batch()
        except (pa.ArrowInvalid, StopIteration, OSError) as error:
            raise CorruptFileError(
                f"{self._path}: expected the result of a batch, found other bytes; delete the file", path=self._path
            ) from error

    def put(self, number: BatchNumber, batch: pa.RecordBatch) -> None:
        """Keeps the result for a batch."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        with closing(self._open()) as file, file:
            data = memoryview(sink.getvalue())
            file.execute("insert or replace into results values (?, ?, ?, ?)", (*number, data))

    def remove(self) -> None:
        """Removes the file."""
        with suppress(FileNotFoundError):
            os.remove(self._path)

    def _open(self) -> sqlite3.Connection:
        file = sqlite3.connect(self._path)
        try:
            file.execute("select count(*) from sqlite_master")
        except sqlite3.DatabaseError as error:
            file.close()
            raise CorruptFileError(
                f"{self._path}: expected a file of kept results, found something else; choose another checkpoint_file",
                path=self._path,
            ) from error
        return file


def batch_udf(
    output_schema: pa.Schema | None = None, checkpoint_file: str | os.PathLike[str] | None = None
) -> Callable[[Callable[[pa.RecordBatch], Any]], BatchUDF]:
    """A decorator of functions for `LanceDataset.add_columns`.

    Args:
        output_schema: The columns that the function returns; by default those of its first result.
        checkpoint_file: A local file that stores the result of each batch, so that a rerun after a failure computes
            only the missing ones. It is valid for one version of one table and grows as large as the new columns. It
            is deleted when they are committed.

    Example:
        >>> import esker, pyarrow as pa, pyarrow.compute as pc
        >>> @esker.batch_udf()
        ... def double(batch):
        ...     return pa.record_batch([pc.multiply(batch["id"], 2)], ["twice"])
        >>> dataset = esker.write_dataset(pa.table({"id": [1, 2]}), "memory://doc-udf")
        >>> dataset.add_columns(double, read_columns=["id"])
        >>> dataset.to_table()["twice"].to_pylist()
        [2, 4]
    """
    return lambda function: BatchUDF(function, output_schema, checkpoint_file)


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)


if not TYPE_CHECKING:
    __getattr__ = names_of_peer(__name__)
