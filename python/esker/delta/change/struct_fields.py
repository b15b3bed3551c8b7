"""What is assigned to a column of structs: fields are found by their names, and none is lost."""

from __future__ import annotations

import pyarrow as pa

from ...arrow.nested import is_list_like
from ...exceptions import SchemaMismatchError


def check_fields(found: pa.DataType, kind: pa.DataType, path: str, *, fills: bool) -> None:
    """Raises unless structs of both types have the same fields, in any order: what has no place would be lost.

    Args:
        found: The type of what is assigned.
        kind: The column's.
        path: The column, or the field within it.
        fills: Whether fields may be missing from what is assigned; they are null then.

    Raises:
        SchemaMismatchError: They have not.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.change.struct_fields import check_fields
        >>> check_fields(pa.struct([("a", "int8")]), pa.struct([("a", "int64"), ("b", "int64")]), "v", fills=True)
    """
    types = pa.types
    if types.is_struct(found) and types.is_struct(kind):
        theirs, own = (
            {each.field(i).name: each.field(i).type for i in range(each.num_fields)} for each in (found, kind)
        )
        is_short = not fills and own.keys() - theirs.keys()
        if is_short or theirs.keys() - own.keys():
            raise SchemaMismatchError(
                f"column {path!r}: expected a struct of the fields {', '.join(own)}, found one of {', '.join(theirs)}; "
                "give it these fields, with named_struct; a merge with merge_schema=True adds what its source has",
                column=path,
                expected=str(kind),
                found=str(found),
            )
        for name in theirs:
            check_fields(theirs[name], own[name], f"{path}.{name}", fills=fills)
    elif types.is_map(found) and types.is_map(kind):
        check_fields(found.key_type, kind.key_type, f"{path}.key", fills=fills)
        check_fields(found.item_type, kind.item_type, f"{path}.value", fills=fills)
    elif types.is_list(kind) and is_list_like(found):
        check_fields(found.value_type, kind.value_type, f"{path}.element", fills=fills)
