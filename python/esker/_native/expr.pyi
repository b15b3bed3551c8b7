"""Predicates: SQL or Substrait in, typed against a schema."""

from typing import Any, final

from .table import ArrowSchemaExportable

@final
class Predicate:
    """A boolean expression over the columns of one schema."""

    @staticmethod
    def parse_sql(sql: str, schema: ArrowSchemaExportable) -> Predicate:
        """The predicate that `sql`, the text of a WHERE clause, means over `schema`.

        Raises `InvalidArgumentError` if it does not parse, names no column of the schema or is no condition.
        """

    @staticmethod
    def from_substrait(data: bytes, schema: ArrowSchemaExportable) -> Predicate:
        """The predicate of a Substrait `ExtendedExpression` that holds one expression over `schema`."""

    @property
    def columns(self) -> list[str]:
        """The top-level columns that it reads."""

    def __str__(self) -> str:
        """It as SQL."""

    def __reduce__(self) -> tuple[Any, ...]: ...
