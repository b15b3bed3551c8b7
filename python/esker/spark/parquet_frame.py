"""Plain files of a Delta table as a DataFrame of Spark's own Parquet reader, which decodes them in the JVM.

Spark then knows the size of the table, reads the columns that a query uses, and leaves out row groups by its filters.
That is for files that mean to Spark exactly what they mean to the table: all others are read by esker.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.fs as pa_fs
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as spark_types

from esker.delta.read.file_reader import TableFile, TableFileReader
from esker.spark.types import exchange_schema

__all__ = ["frame_of_parquet"]

_MOST_FILES = 256
"""More files are listed by a job of Spark's before anything is read."""
_PATH = re.compile(r"/[\w./=+@,~ -]*")
"""A path that is no pattern to Spark, and that it does not decode."""
_FLOATING = (spark_types.FloatType, spark_types.DoubleType)
_OPTIONS = {
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "mergeSchema": "false",
    "datetimeRebaseMode": "CORRECTED",
}
"""What the session may have set otherwise: rows would be missing, or days be others, without an error."""
_OF_OTHER_CALENDARS = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
"""What a file says of which Spark counts the days by the Julian calendar before 1582, as no other reader does."""
_BY_SPARK = b"org.apache.spark.version"
_PROLEPTIC = b"3.0.0"
"""The first release whose files are not read so."""


def frame_of_parquet(
    spark: SparkSession, reader: TableFileReader, files: list[TableFile], schema: spark_types.StructType
) -> DataFrame | None:
    """A DataFrame of Spark's Parquet reader over some files of a table.

    Args:
        spark: A classic session.
        reader: What reads files of the table.
        files: The files.
        schema: The Spark schema of the rows: some of the table's columns, in an order.

    Returns:
        The DataFrame, whose schema is `schema`; None where Spark may not read the same values.

    Example:
        `frame_of_parquet(spark, reader, files, schema)`
    """
    if reader.mode != "none" or not 0 < len(files) <= _MOST_FILES or not schema.fields:
        return None
    if any(_hides_nan(field.dataType) for field in schema.fields):
        return None
    paths = []
    for file in files:
        path = _plain_path(reader, file)
        if path is None or not _is_as_the_table(reader, file, schema):
            return None
        paths.append(f"file://{path}")
    if len(set(paths)) != len(paths):
        return None
    frame = spark.read.schema(schema).options(**_OPTIONS).parquet(*paths)
    frame = frame.select(*(_with_nan(field) for field in schema.fields))
    return frame if frame.schema == schema else None


def _with_nan(field: spark_types.StructField) -> Column:
    """A column, of which Spark compares no filter with the statistics of files where these say nothing of NaN."""
    column = F.col("`" + field.name.replace("`", "``") + "`")
    if isinstance(field.dataType, _FLOATING):
        column = F.nanvl(column, column)
    return column.alias(field.name)


def _hides_nan(kind: spark_types.DataType) -> bool:
    """Whether Spark would compare filters with the statistics of floating-point fields within a struct."""
    if not isinstance(kind, spark_types.StructType):
        return False
    return any(isinstance(field.dataType, _FLOATING) or _hides_nan(field.dataType) for field in kind.fields)


def _plain_path(reader: TableFileReader, file: TableFile) -> str | None:
    if file.partition or file.deletion_vector is not None or file.span is not None:
        return None
    filesystem, path = reader.files.locate(file.path)
    if not isinstance(filesystem, pa_fs.LocalFileSystem) or not _PATH.fullmatch(path):
        return None
    # Spark takes no file of such a name for data.
    name = path.rpartition("/")[2]
    return None if name.startswith(("_", ".")) or name.endswith("._COPYING_") or "//" in path else path


def _is_as_the_table(reader: TableFileReader, file: TableFile, schema: spark_types.StructType) -> bool:
    """Whether the columns of a file have the table's names and types, as Spark understands them."""
    metadata = reader.footer(file)
    if any(metadata.schema.column(i).physical_type == "INT96" for i in range(metadata.num_columns)):
        return False
    said = metadata.metadata or {}
    if any(name in said for name in _OF_OTHER_CALENDARS) or said.get(_BY_SPARK, _PROLEPTIC) < _PROLEPTIC:
        return False
    try:
        fields = list(metadata.schema.to_arrow_schema())
    except pa.ArrowException:
        # Whoever reads the columns says what is wrong with them.
        return False
    there = {field.name: field.type for field in fields}
    known = {field.name for field in reader.annotated}
    # Spark finds columns in any case.
    if len({field.name.lower() for field in fields}) != len(fields) or not there.keys() <= known:
        return False
    return all(field.name not in there or _equal(there[field.name], field.type) for field in exchange_schema(schema))


def _equal(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether types are the same to Spark: their nulls, and the names within lists and maps, do not matter."""
    if pa.types.is_struct(found) and pa.types.is_struct(wanted):
        names = [found.field(i).name for i in range(found.num_fields)]
        return (
            0 < found.num_fields == wanted.num_fields
            and names == [wanted.field(i).name for i in range(wanted.num_fields)]
            and all(_equal(found.field(i).type, wanted.field(i).type) for i in range(found.num_fields))
        )
    if pa.types.is_map(found) and pa.types.is_map(wanted):
        return _equal(found.key_type, wanted.key_type) and _equal(found.item_type, wanted.item_type)
    if (pa.types.is_list(found) or pa.types.is_large_list(found)) and pa.types.is_list(wanted):
        return _equal(found.value_type, wanted.value_type)
    return bool(_plain(found) == wanted)


def _plain(found: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(found) or pa.types.is_string_view(found):
        return pa.string()
    if pa.types.is_large_binary(found) or pa.types.is_binary_view(found):
        return pa.binary()
    return found
