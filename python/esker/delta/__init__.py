"""Delta tables, with the names and arguments of deltalake.

In a program that says `from deltalake import DeltaTable, write_deltalake`, say `from esker.delta import ...`.
"""

from .metadata import Metadata, ProtocolVersions
from .schema import ArrayType, DataType, Field, MapType, PrimitiveType, Schema, StructType
from .table import DeltaTable

__all__ = [
    "ArrayType",
    "DataType",
    "DeltaTable",
    "Field",
    "MapType",
    "Metadata",
    "PrimitiveType",
    "ProtocolVersions",
    "Schema",
    "StructType",
]
