"""Lets Spark find the format `esker`: it imports every top-level module `pyspark_*` and asks for `DefaultSource`.

One such module that fails to import hides the formats of all the others, so nothing is imported here that can fail:
esker itself only when the format is used.
"""

from __future__ import annotations

from typing import Any

__all__: list[str] = []

try:
    from pyspark.sql.datasource import DataSource
except ImportError:
    # Spark before 4.0, or none: nothing to offer, and no reason to fail.
    pass
else:

    class DefaultSource(DataSource):
        """The data source `esker`; see `esker.spark.EskerSource`, which does the work."""

        def __init__(self, options: dict[str, str]) -> None:
            super().__init__(options)
            from esker.spark.source import EskerSource

            self._source = EskerSource(options)

        @classmethod
        def name(cls) -> str:
            """The name to give to `format()`."""
            return "esker"

        def schema(self) -> Any:
            """The schema of what will be read."""
            return self._source.schema()

        def reader(self, schema: Any) -> Any:
            """Reads a table."""
            return self._source.reader(schema)

        def writer(self, schema: Any, overwrite: bool) -> Any:
            """Writes a table."""
            return self._source.writer(schema, overwrite)

        def streamWriter(self, schema: Any, overwrite: bool) -> Any:
            """Writes the batches of a stream to a table."""
            return self._source.streamWriter(schema, overwrite)

        def streamReader(self, schema: Any) -> Any:
            """Reads a table as a stream."""
            return self._source.streamReader(schema)

        def __getstate__(self) -> dict[str, Any]:
            # What the pickle of the source does not carry is not to be carried beside it.
            return {**self.__dict__, "options": self._source.__getstate__()["options"]}

    __all__ += ["DefaultSource"]
