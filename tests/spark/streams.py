"""What Spark does with source and sink of a stream, without Spark: objects are pickled where it pickles them."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType

from esker.spark import EskerSource
from esker.spark.streaming.batch_identity import BATCH_ID, QUERY_ID
from tests.spark.jobs import batches


class Query:
    """A query that reads a table, and its checkpoint: the offset up to which it has read."""

    def __init__(self, uri: str, **options: object) -> None:
        self.given = {"path": uri, **{name: str(value) for name, value in options.items()}}
        self.offset: dict[str, Any] | None = None
        self.reader: Any = None

    def start(self, **options: object) -> None:
        """Starts it, or starts it again, perhaps with other options."""
        self.given |= {name: str(value) for name, value in options.items()}
        self.schema = EskerSource(self.given).schema()
        self.reader = _sent(EskerSource(self.given)).streamReader(self.schema)

    def batch(self, *, lifts_limits: bool = False) -> list[dict[str, Any]] | None:
        """The rows of the next batch, None if there is none."""
        if self.reader is None:
            self.start()
        if self.offset is None:
            self.offset = _text(self.reader.initialOffset())
        limit = ReadAllAvailable() if lifts_limits else self.reader.getDefaultReadLimit()
        end = _text(self.reader.latestOffset(self.offset, limit))
        if end == self.offset:
            return None
        rows = self.between(self.offset, end)
        self.offset = end
        return rows

    def between(self, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
        """The rows between two offsets: what a batch that is run again reads."""
        task = _sent(EskerSource(self.given)).streamReader(self.schema)
        parts = [_sent(part) for part in self.reader.partitions(start, end)]
        return [row for part in parts for batch in _sent(task).read(part) for row in batch.to_pylist()]

    def batches(self) -> Iterator[list[dict[str, Any]]]:
        """All batches until there is none."""
        while (found := self.batch()) is not None:
            yield found

    def rows(self) -> list[dict[str, Any]]:
        """The rows of all batches."""
        return [row for rows in self.batches() for row in rows]


class _Task:
    """The context of a task: its number, and what Spark tells it of the query."""

    def __init__(self, number: int, query: str | None, batch: int) -> None:
        self._number, self._properties = number, {QUERY_ID: query, BATCH_ID: str(batch)}

    def partitionId(self) -> int:
        return self._number

    def getLocalProperty(self, name: str) -> str | None:
        return self._properties.get(name)


class Batch:
    """A batch of a query on its way into a table."""

    def __init__(
        self,
        uri: str,
        schema: StructType,
        query: str | None,
        number: int,
        *,
        complete: bool = False,
        source: type[EskerSource] = EskerSource,
        **options: Any,
    ) -> None:
        given = {"path": uri, **{name: str(value) for name, value in options.items()}}
        self._schema, self._complete = schema, complete
        self.query, self.number = query, number
        self._source = source(given)
        self.writer = _sent(self._source.streamWriter(schema, complete))

    def staged(self, tasks: Sequence[list[dict[str, Any]]]) -> list[Any]:
        """The messages of its tasks."""

        def written(number: int, rows: list[dict[str, Any]]) -> Any:
            with patch.object(TaskContext, "get", lambda: _Task(number, self.query, self.number)):
                return _sent(_sent(self.writer).write(iter(batches(self._schema, rows))))

        return [written(number, rows) for number, rows in enumerate(tasks)]

    def commit(self, messages: Sequence[Any]) -> None:
        """Commits it, as Spark does: `abort` follows if that fails."""
        try:
            self._anew().commit(messages, self.number)
        except BaseException:
            self._anew().abort(messages, self.number)
            raise

    def abort(self, messages: Sequence[Any]) -> None:
        """Gives it up."""
        self._anew().abort(messages, self.number)

    def run(self, *tasks: list[dict[str, Any]]) -> None:
        """All of it."""
        self.commit(self.staged(tasks))

    def _anew(self) -> Any:
        return _sent(self._source).streamWriter(self._schema, self._complete)


def ids(start: int, stop: int) -> pa.Table:
    """Rows with an id and a text."""
    return pa.table({"id": pa.array(range(start, stop), pa.int64()), "s": [f"x{n}" for n in range(start, stop)]})


def _text(offset: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(offset))
    return found


def _sent(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))
