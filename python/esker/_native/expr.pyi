"""Predicates: SQL, a serialized Arrow expression or Substrait in, typed against a schema."""

from typing import Any, Protocol, final, type_check_only

from .schema import ArrowSchemaExportable

__all__ = ["Expression", "Predicate", "to_json_text", "to_jsonb"]

@type_check_only
class ArrowBatchExportable(Protocol):
    """Anything that hands out a record batch, or an array, by the Arrow PyCapsule interface."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@type_check_only
class ArrowArrayExportable(Protocol):
    """An array, by the Arrow PyCapsule interface."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@final
class Predicate:
    """A boolean expression over the columns of one schema."""

    @staticmethod
    def parse_sql(sql: str, schema: ArrowSchemaExportable, numbers_as_text: bool = False) -> Predicate:
        """The predicate that `sql`, the text of a WHERE clause, means over `schema`.

        With `numbers_as_text` a number that is compared with text is its text; without, that is refused.

        Raises `InvalidArgumentError` if it does not parse, names no column of the schema or is no condition.
        """

    @staticmethod
    def from_arrow_expression(data: bytes, schema: ArrowSchemaExportable, as_arrow: bool = False) -> Predicate:
        """The predicate of Arrow's serialized form of an expression over `schema`: what a pickled pyarrow expression holds.

        NaN and nulls compare as in SQL; with `as_arrow` as pyarrow has them.
        """

    @staticmethod
    def from_substrait(data: bytes, schema: ArrowSchemaExportable) -> Predicate:
        """The predicate of a Substrait `ExtendedExpression` that holds one expression over `schema`."""

    @property
    def columns(self) -> list[str]:
        """The top-level columns that it reads."""

    @property
    def paths(self) -> list[tuple[str, str | None]]:
        """What it reads: a top-level column and a field of it, or the whole column with None."""

    @property
    def implied(self) -> list[tuple[str, str, ArrowArrayExportable | None]]:
        """Comparisons of single columns that hold for every row that it keeps: column, operator, values.

        The operator is `=`, `<`, `<=`, `>`, `>=`, `in`, `is null` or `is not null`; the last two have no values. They mean
        the same to every evaluator: none is an order of floats.
        """

    @property
    def keeps_nan(self) -> list[list[str]]:
        """The paths of float columns of which it may keep rows with NaN where NaN compares with nothing."""

    def __str__(self) -> str:
        """The SQL text."""

    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Expression:
    """An expression over the columns of one schema: what one output column is computed from."""

    @staticmethod
    def parse_sql(sql: str, schema: ArrowSchemaExportable, numbers_as_text: bool = False) -> Expression:
        """The expression that `sql` means over `schema`; arguments as `Predicate.parse_sql` has them.

        Raises `InvalidArgumentError`.
        """

    @staticmethod
    def parse_column(sql: str, schema: ArrowSchemaExportable) -> Expression:
        """The expression that a new column is computed from: the type of `a + 1` is that of `a`, if it holds the number.

        Raises `InvalidArgumentError`.
        """

    @staticmethod
    def parse_rule(sql: str, schema: ArrowSchemaExportable) -> Expression:
        """The expression that a rule of a Delta table means: `f > 0.1` compares a float32 as a double, as Spark does.

        Raises `InvalidArgumentError`.
        """

    @property
    def columns(self) -> list[str]:
        """The top-level columns that it reads."""

    def __arrow_c_schema__(self) -> object:
        """A field without a name, for `pyarrow.field(it)`: the type of its values, and whether they may be null.

        They may not where no column that they come from may be, which not every writer keeps to.
        """

    def evaluate(
        self, batch: ArrowBatchExportable, *, data_type: ArrowSchemaExportable | None = None
    ) -> ArrowBatchExportable:
        """Its values for a batch that holds at least `columns`: an array as long as the batch.

        With `data_type` as a column of that type takes them: numbers lose what lies behind the point, text is parsed,
        and a value that does not fit raises `InvalidArgumentError`.
        """

    def __str__(self) -> str:
        """The SQL text."""

    def __reduce__(self) -> tuple[Any, ...]: ...

def to_jsonb(batch: ArrowBatchExportable, first_row: int = 0) -> ArrowBatchExportable:
    """The batch with its `arrow.json` columns as JSONB, at any depth of structs, lists and maps.

    `first_row` is the number of the batch's first row, for the message of the `InvalidArgumentError` that a text raises
    which is no JSON.
    """

def to_json_text(batch: ArrowBatchExportable) -> ArrowBatchExportable:
    """The batch with its `lance.json` columns as text.

    Raises `InvalidArgumentError` if bytes are no JSONB.
    """
