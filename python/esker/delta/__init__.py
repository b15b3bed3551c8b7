"""Delta tables, with the names and arguments of deltalake.

In a program that says `from deltalake import DeltaTable, write_deltalake`, say `from esker.delta import ...`.
"""

from .features import TableFeatures
from .metadata import Metadata, ProtocolVersions
from .properties import (
    BloomFilterProperties,
    ColumnProperties,
    CommitProperties,
    PostCommitHookProperties,
    Transaction,
    WriterProperties,
)
from .schema import ArrayType, DataType, Field, MapType, PrimitiveType, Schema, StructType
from .table import DeltaTable
from .write.add_files import AddAction
from .write.convert import convert_to_deltalake
from .write.writer import write_deltalake

__all__ = [
    "AddAction",
    "ArrayType",
    "BloomFilterProperties",
    "ColumnProperties",
    "CommitProperties",
    "DataType",
    "DeltaTable",
    "Field",
    "MapType",
    "Metadata",
    "PostCommitHookProperties",
    "PrimitiveType",
    "ProtocolVersions",
    "Schema",
    "StructType",
    "TableFeatures",
    "Transaction",
    "WriterProperties",
    "convert_to_deltalake",
    "write_deltalake",
]
