"""Checks that a DataFrame's schema fits a table's: columns by name, types as Spark shows the table's types.

A DataFrame's type fits a column's if both are of one kind: integers of any width, float and double, decimals. Integers
fit the other two kinds as well. The cast checks whether each value fits. Nothing is converted from one kind to another:
no text to numbers, no timestamps to timestamps without a zone. This allows those casts of Spark's ANSI store assignment
that keep the value.

The rule is the same for Lance and Delta tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import types as spark

from esker.exceptions import InvalidArgumentError, SchemaMismatchError
from esker.spark.spelling import spelled_as
from esker.spark.types import spark_type, table_schema

__all__ = ["check_append", "check_read", "check_vectors", "renamed", "replacing_schema"]

_WHOLE = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType)
_REAL = (spark.FloatType, spark.DoubleType)


def renamed(frame: spark.StructType, known: Sequence[str]) -> spark.StructType:
    """A DataFrame's schema with the names of its columns in the spelling of a table.

    Example:
        >>> from pyspark.sql.types import LongType, StructType
        >>> from esker.spark.matching import renamed
        >>> renamed(StructType().add("ID", LongType()), ["id"]).names
        ['id']
    """
    names = spelled_as(frame.names, known)
    return spark.StructType(
        [
            spark.StructField(name, field.dataType, field.nullable, field.metadata)
            for name, field in zip(names, frame.fields, strict=True)
        ]
    )


def check_append(
    frame: spark.StructType,
    table: pa.Schema,
    uri: str,
    *,
    optional: Collection[str] = (),
    merging: bool = False,
    advice: str = "select the table's columns, or overwrite the table",
) -> None:
    """Checks that a DataFrame can be appended to a table.

    Args:
        frame: The DataFrame's schema.
        table: The table's schema; for a schema merge it includes the DataFrame's new columns already.
        uri: The table's URI, for error messages.
        optional: Columns that the DataFrame need not have, since the table generates them.
        merging: Whether all columns and fields of structs are optional.
        advice: What to do about columns that do not match.

    Raises:
        SchemaMismatchError: A column is missing, is unknown to the table or has a type that does not fit.

    Example:
        >>> import pyarrow as pa
        >>> from pyspark.sql.types import ArrayType, FloatType, StructType
        >>> from esker.spark.matching import check_append
        >>> frame = StructType().add("v", ArrayType(FloatType()))
        >>> check_append(frame, pa.schema({"v": pa.list_(pa.float32(), 768)}), "t.lance")
    """
    given = frozenset(frame.names)
    needed = [name for name in table.names if name in given or not (merging or name in optional)]
    _check_names(frame.names, needed, f"the table at {uri}", None, advice)
    for field in frame.fields:
        expected = spark_type(table.field(field.name).type, field.name)
        _check_type(field.dataType, expected, field.name, merging, advice)


def check_vectors(vectors: Mapping[str, int], table: pa.Schema) -> None:
    """Checks that the vectors that an append asks for are those of the table, whose types it keeps.

    Args:
        vectors: The length of each column.
        table: The table's schema.

    Raises:
        InvalidArgumentError: The table lacks one, or has another type for it.

    Example:
        >>> import pyarrow as pa
        >>> from esker.spark.matching import check_vectors
        >>> check_vectors({"V": 768}, pa.schema({"v": pa.list_(pa.float32(), 768)}))
    """
    for name, size in zip(spelled_as(list(vectors), table.names), vectors.values(), strict=True):
        if name not in table.names:
            raise InvalidArgumentError(
                f"option vectors: expected columns of the table ({', '.join(table.names)}), found {name}", column=name
            )
        kind = table.field(name).type
        stored = getattr(kind, "storage_type", kind)
        if not pa.types.is_fixed_size_list(stored) or stored.list_size != size:
            raise InvalidArgumentError(
                f"option vectors: expected {name!r} to be {kind} as in the table, found {name}={size}; leave it out",
                column=name,
            )


def check_read(table: pa.Schema, wanted: spark.StructType) -> None:
    """Checks that columns of a table can be read as the types of the user's schema, by the same rule as for writes.

    Args:
        table: The table's schema.
        wanted: The user's schema, of columns that the table has.

    Raises:
        SchemaMismatchError: A type does not fit its column.
    """
    for field in wanted.fields:
        found = table.field(field.name).type
        shown = spark.LongType() if pa.types.is_integer(found) else spark_type(found, field.name)
        _check_type(shown, field.dataType, field.name, False, "ask for the table's fields")


def replacing_schema(
    frame: spark.StructType, table: pa.Schema | None, vectors: Mapping[str, int] | None = None
) -> pa.Schema:
    """The schema of a table that a DataFrame creates or replaces.

    A column whose Spark type has not changed keeps its Arrow type and metadata, whatever the case of its name: a vector
    stays a fixed_size_list. Other columns get the type in which Spark exchanges them.

    Args:
        frame: The DataFrame's schema.
        table: The schema of the table to replace, None if there is none or it is to be ignored.
        vectors: Lengths of array columns that become fixed_size_list; they override the table's types.

    Raises:
        InvalidArgumentError: Two columns have one name, or `vectors` has a column that is not an array.
        UnsupportedError: A table cannot hold a type.
    """
    given = dict(vectors or {})
    sizes = dict(zip(spelled_as(list(given), frame.names), given.values(), strict=True))
    repeated = {name for name, times in Counter(frame.names).items() if times > 1}
    if repeated:
        raise InvalidArgumentError(f"expected columns of different names, found {', '.join(sorted(repeated))} twice")
    fields = []
    known = spelled_as(frame.names, [] if table is None else table.names)
    for field, fresh, there in zip(frame.fields, table_schema(frame), known, strict=True):
        size = sizes.pop(field.name, None)
        if size is not None:
            if not pa.types.is_list(fresh.type):
                raise InvalidArgumentError(
                    f"option vectors: expected an array column, found {field.name!r} of {fresh.type}", column=field.name
                )
            fields.append(pa.field(field.name, pa.list_(fresh.type.value_type, size)))
            continue
        index = -1 if table is None else table.get_field_index(there)
        kept = None if table is None or index < 0 else table.field(index)
        same = kept is not None and _plain(spark_type(kept.type, field.name)) == _plain(
            spark_type(fresh.type, field.name)
        )
        fields.append(kept.with_name(field.name).with_nullable(True) if kept is not None and same else fresh)
    if sizes:
        raise InvalidArgumentError(
            f"option vectors: expected columns of the DataFrame, found {', '.join(sizes)}", column=next(iter(sizes))
        )
    return pa.schema(fields, metadata=None if table is None else table.metadata)


def _plain(made: spark.DataType) -> str:
    # Without nullability.
    return made.simpleString()


def _check_names(found: Sequence[str], expected: Sequence[str], owner: str, column: str | None, advice: str) -> None:
    given, known = frozenset(found), frozenset(expected)
    missing = [name for name in expected if name not in given]
    extra = [name for name in found if name not in known]
    if not missing and not extra and len(found) == len(expected):
        return
    parts = [f"{', '.join(missing)} missing"] if missing else []
    parts += [f"{', '.join(extra)} unknown to it"] if extra else []
    if not parts:
        # Neither more columns of the table nor others of the DataFrame would help.
        twice = sorted({name for name in found if found.count(name) > 1})
        parts, advice = [f"{', '.join(twice)} twice"], "give each column a name of its own"
    raise SchemaMismatchError(
        f"{owner} expected the columns {', '.join(expected)}, found {' and '.join(parts)}: {advice}",
        column=column or next(iter([*missing, *extra]), None),
        expected=", ".join(expected),
        found=", ".join(found),
    )


def _check_type(found: spark.DataType, expected: spark.DataType, column: str, merging: bool, advice: str) -> None:
    if isinstance(found, spark.UserDefinedType):
        found = found.sqlType()
    if isinstance(found, spark.StructType) and isinstance(expected, spark.StructType):
        given = frozenset(found.names)
        needed = [name for name in expected.names if name in given or not merging]
        _check_names(found.names, needed, f"column {column!r}", column, advice)
        for field in found.fields:
            _check_type(field.dataType, expected[field.name].dataType, f"{column}.{field.name}", merging, advice)
    elif isinstance(found, spark.ArrayType) and isinstance(expected, spark.ArrayType):
        _check_type(found.elementType, expected.elementType, f"{column}.item", merging, advice)
    elif isinstance(found, spark.MapType) and isinstance(expected, spark.MapType):
        _check_type(found.keyType, expected.keyType, f"{column}.key", merging, advice)
        _check_type(found.valueType, expected.valueType, f"{column}.value", merging, advice)
    elif not _fits(found, expected):
        raise SchemaMismatchError(
            f"column {column!r} expected {expected.simpleString()}, found {found.simpleString()}: cast it first",
            column=column,
            expected=expected.simpleString(),
            found=found.simpleString(),
        )


def _fits(found: spark.DataType, expected: spark.DataType) -> bool:
    if isinstance(found, spark.NullType) or type(found) is type(expected):
        return True
    if isinstance(found, _WHOLE):
        return isinstance(expected, (*_WHOLE, *_REAL, spark.DecimalType))
    if isinstance(found, (spark.CharType, spark.VarcharType)):
        return isinstance(expected, spark.StringType)
    return isinstance(found, _REAL) and isinstance(expected, _REAL)
