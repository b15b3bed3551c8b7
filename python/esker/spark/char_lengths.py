"""Lengths of texts in Delta tables: what Spark has made as `char(n)` or `varchar(n)` holds n characters at most.

The log has such a column as a string, with Spark's type as a text in the metadata of the field:

```
{"name": "code", "type": "string", "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}}
{"name": "tags", "type": {"type": "array", ...}, "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "array<char(2)>"}}
```

Spark's Delta refuses longer texts in every write of a DataFrame, whatever they end with, and pads none; so does this.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from esker.delta.schema import ArrayType, DataType, Field, MapType, PrimitiveType, Schema, StructType
from esker.exceptions import SchemaMismatchError

__all__ = ["Lengths", "check_lengths", "lengths_of"]

Lengths: TypeAlias = "int | Mapping[str, Lengths]"
"""How long a text may be, or what is limited within a struct, an array or a map: by the names of fields, `item`, `key`
and `value`."""

_SPARK_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
_LIMITED = re.compile(r"(?:var)?char\((\d+)\)")
_LEAF = re.compile(r"[a-z_ ]+(?:\([\d, ]*\))?")


def lengths_of(schema: Schema) -> dict[str, Lengths]:
    """The columns of a table whose texts have a length at most.

    Example:
        >>> from esker.delta import Field, Schema
        >>> from esker.spark.char_lengths import lengths_of
        >>> lengths_of(Schema([Field("code", "string", metadata={"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"})]))
        {'code': 3}
    """
    found = {field.name: _of_field(field) for field in schema.fields}
    return {name: lengths for name, lengths in found.items() if lengths}


def check_lengths(batch: pa.RecordBatch, lengths: Mapping[str, Lengths]) -> None:
    """Checks that no text is longer than its column's type allows.

    Raises:
        SchemaMismatchError: One is.

    Example:
        >>> import pyarrow as pa
        >>> from esker.spark.char_lengths import check_lengths
        >>> check_lengths(pa.record_batch({"code": ["abc", None]}), {"code": 3})
    """
    for name, each in lengths.items():
        index = batch.schema.get_field_index(name)
        if index >= 0:
            _check(batch.column(index), each, name)


def _check(array: Any, lengths: Lengths, column: str) -> None:
    if isinstance(lengths, int):
        longest = pc.max(pc.utf8_length(array)).as_py()
        if longest is not None and longest > lengths:
            raise SchemaMismatchError(
                f"column {column!r} expected texts of at most {lengths} characters, as Spark's type of it says, found "
                f"one of {longest}: shorten them first, as in left({column}, {lengths})",
                column=column,
                expected=f"varchar({lengths})",
                found=f"a text of {longest} characters",
            )
    elif pa.types.is_struct(array.type):
        for field, child in zip(array.type, array.flatten(), strict=True):
            if field.name in lengths:
                _check(child, lengths[field.name], f"{column}.{field.name}")
    elif pa.types.is_map(array.type):
        for part, child in (("key", array.keys), ("value", array.items)):
            if part in lengths:
                _check(child, lengths[part], f"{column}.{part}")
    else:
        _check(pc.list_flatten(array), lengths["item"], f"{column}.item")


def _of_field(field: Field) -> Lengths:
    # A log may name the type itself, too.
    own = field.type.type if isinstance(field.type, PrimitiveType) else None
    text = field.metadata.get(_SPARK_TYPE, own)
    if not isinstance(text, str):
        return {}
    try:
        lengths, rest = _parsed(text, field.type)
    except ValueError:
        return {}
    return {} if rest else lengths


def _parsed(text: str, kind: DataType) -> tuple[Lengths, str]:
    """What is limited in a type of the log, by the text of Spark's type for it, and what of the text is behind that."""
    if isinstance(kind, StructType):
        rest = _behind(text, "struct<")
        inner: dict[str, Lengths] = {}
        for number, field in enumerate(kind.fields):
            rest = _behind(rest, "," if number else "")
            ticked = f"`{field.name.replace('`', '``')}`:"
            rest = _behind(rest, ticked if rest.startswith(ticked) else f"{field.name}:")
            inner[field.name], rest = _parsed(rest, field.type)
        return _limited(inner), _behind(rest, ">")
    if isinstance(kind, ArrayType):
        item, rest = _parsed(_behind(text, "array<"), kind.element_type)
        return _limited({"item": item}), _behind(rest, ">")
    if isinstance(kind, MapType):
        key, rest = _parsed(_behind(text, "map<"), kind.key_type)
        value, rest = _parsed(_behind(rest, ","), kind.value_type)
        return _limited({"key": key, "value": value}), _behind(rest, ">")
    leaf = _LEAF.match(text)
    if leaf is None:
        raise ValueError(text)
    found = _LIMITED.fullmatch(leaf[0])
    return {} if found is None else int(found[1]), text[leaf.end() :]


def _limited(inner: Mapping[str, Lengths]) -> Lengths:
    return {name: lengths for name, lengths in inner.items() if lengths}


def _behind(text: str, start: str) -> str:
    if not text.startswith(start):
        raise ValueError(text)
    return text[len(start) :]
