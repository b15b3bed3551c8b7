"""The columns of a Lance table with the ids that data files know them by."""

from collections.abc import Sequence
from typing import Any, Protocol, final, type_check_only

__all__ = ["Field", "Schema"]

@type_check_only
class ArrowSchemaExportable(Protocol):
    """Anything that hands out its schema by the Arrow PyCapsule interface."""

    def __arrow_c_schema__(self) -> object: ...

@final
class Field:
    """One column or part of a column, with the id that data files know it by."""

    @property
    def id(self) -> int:
        """Unique within the table; never used again for another column."""

    @property
    def name(self) -> str:
        """The name within its parent."""

    @property
    def logical_type(self) -> str:
        """The format's word for the type: "int64", "struct", "fixed_size_list:float:768"."""

    @property
    def nullable(self) -> bool:
        """Whether nulls are allowed."""

    @property
    def metadata(self) -> dict[str, bytes]:
        """The field's metadata."""

    @property
    def unenforced_primary_key(self) -> bool:
        """Whether it is part of the key that upserts agree not to duplicate."""

    @property
    def children(self) -> list[Field]:
        """The fields within, in order."""

@final
class Schema:
    """A table's columns with their field ids. `pyarrow.schema(it)` is its Arrow schema. Pickles; compares by value."""

    @staticmethod
    def from_arrow(schema: ArrowSchemaExportable, *, first_id: int = 0) -> Schema:
        """The columns of an Arrow schema with fresh ids: `first_id`, and so on, depth first.

        Raises `UnsupportedError` (with `column` and `type`) for a type that no file version can hold.
        """

    def check_column_names(self, known: Schema | None = None) -> None:
        """Raises `InvalidArgumentError` for a column that a table cannot have by its name, unless `known` has it."""

    def extended(self, other: Schema) -> Schema:
        """The columns of `other` behind these, structs merged. Raises `InvalidArgumentError` for one that is there."""

    def without(self, paths: Sequence[str]) -> Schema:
        """The schema without the fields at dotted paths. Raises `InvalidArgumentError` for one that is not there."""

    def altered(self, alterations: Sequence[tuple[str, str | None, bool | None]]) -> Schema:
        """The schema with fields, by their paths, under other names, nullable or not: all at once. Raises
        `InvalidArgumentError`.
        """

    def replaced(self, path: str, field: Field) -> Schema:
        """The schema with `field` in place of the one at a path. Raises `InvalidArgumentError`."""

    def find(self, path: str) -> Field | None:
        """The field at a dotted path, None if there is none."""

    def select(self, columns: Sequence[str]) -> Schema:
        """Only these columns, with their ids, in this schema's order. Raises `InvalidArgumentError`."""

    @property
    def fields(self) -> list[Field]:
        """The columns, in order."""

    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""

    @property
    def metadata(self) -> dict[str, bytes]:
        """The schema's metadata."""

    @property
    def max_field_id(self) -> int:
        """The highest field id in use, -1 if there are no columns."""

    def described(self) -> Schema:
        """The columns as a filter sees them: descriptions in place of blobs."""

    def __arrow_c_schema__(self) -> object: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
