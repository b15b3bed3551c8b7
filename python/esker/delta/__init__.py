"""Delta tables, with the names and arguments of deltalake.

In a program that says `from deltalake import DeltaTable, write_deltalake`, say `from esker.delta import ...`. Names
load when they are used. Those of deltalake that are not here raise `UnsupportedError`, which says what to do instead.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .._native import __version__
    from .features import TableFeatures
    from .merger import TableMerger
    from .metadata import Metadata, ProtocolVersions
    from .properties import (
        BloomFilterProperties,
        ColumnProperties,
        CommitProperties,
        PostCommitHookProperties,
        Transaction,
        WriterProperties,
    )
    from .query import QueryBuilder
    from .raw_table import DeltaTableConfig
    from .schema import ArrayType, DataType, Field, MapType, PrimitiveType, Schema, StructType, VariantType
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
    "DeltaTableConfig",
    "Field",
    "MapType",
    "Metadata",
    "PostCommitHookProperties",
    "PrimitiveType",
    "ProtocolVersions",
    "QueryBuilder",
    "Schema",
    "StructType",
    "TableFeatures",
    "TableMerger",
    "Transaction",
    "VariantType",
    "WriterProperties",
    "__version__",
    "convert_to_deltalake",
    "rust_core_version",
    "write_deltalake",
]

_MODULES = {
    "features": ["TableFeatures"],
    "merger": ["TableMerger"],
    "metadata": ["Metadata", "ProtocolVersions"],
    "properties": [
        "BloomFilterProperties",
        "ColumnProperties",
        "CommitProperties",
        "PostCommitHookProperties",
        "Transaction",
        "WriterProperties",
    ],
    "query": ["QueryBuilder"],
    "raw_table": ["DeltaTableConfig"],
    "schema": ["ArrayType", "DataType", "Field", "MapType", "PrimitiveType", "Schema", "StructType", "VariantType"],
    "table": ["DeltaTable"],
    "write.add_files": ["AddAction"],
    "write.convert": ["convert_to_deltalake"],
    "write.writer": ["write_deltalake"],
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}
_SUBMODULES = (
    "alter",
    "exceptions",
    "features",
    "fs",
    "merger",
    "metadata",
    "missing",
    "properties",
    "query",
    "schema",
    "table",
    "table_properties",
    "transaction",
    "warnings",
    "writer",
)


def rust_core_version() -> str:
    """The version of the core in Rust, which is that of the package.

    Example:
        >>> from esker.delta import rust_core_version
        >>> len(rust_core_version().split("."))
        3
    """
    from .._native import __version__

    return __version__


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        globals()[name] = getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
        return globals()[name]
    if name == "__version__":
        return rust_core_version()
    if name in _SUBMODULES:
        return import_module(f".{name}", __name__)
    if not name.startswith("_"):
        names = import_module(".missing", __name__)
        if name in names.NAMES:
            raise names.missing(name, names.NAMES[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES})
