"""Versioned Lance tables, with the names and arguments of pylance.

>>> import esker, pyarrow as pa
>>> dataset = esker.write_dataset(pa.table({"id": [1, 2, 3]}), "memory://doc-first")
>>> dataset.to_table(filter="id >= 2").num_rows
2
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from . import exceptions
from ._native import __version__

if TYPE_CHECKING:
    from .blob import Blob, BlobArray, BlobColumn, BlobFile, BlobType, blob_array, blob_field
    from .dataset import (
        LanceDataset,
        LanceOperation,
        LanceScanner,
        MergeInsertBuilder,
        ScanStatistics,
        Transaction,
        dataset,
        write_dataset,
    )
    from .file.blob_writers import DedicatedBlobWriter, PackedBlobWriter
    from .fragment import FragmentMetadata, LanceFragment
    from .lance.base_path import DatasetBasePath
    from .lance.blob.prepared import BlobDescriptor, BlobDescriptorArrayBuilder
    from .lance.cleanup.explanation import (
        CleanupCandidateFile,
        CleanupExplanation,
        CleanupReferencedBranch,
        CleanupStats,
    )
    from .lance.io_stats import IOStats, bytes_read_counter, iops_counter
    from .lance.operation import Index
    from .lance.session import Session
    from .lance.statistics import DataStatistics, FieldStatistics
    from .schema import json_to_schema, schema_to_json
    from .udf import BatchUDF, batch_udf

__all__ = [
    "BatchUDF",
    "Blob",
    "BlobArray",
    "BlobColumn",
    "BlobDescriptor",
    "BlobDescriptorArrayBuilder",
    "BlobFile",
    "BlobType",
    "CleanupCandidateFile",
    "CleanupExplanation",
    "CleanupReferencedBranch",
    "CleanupStats",
    "DataStatistics",
    "DatasetBasePath",
    "DedicatedBlobWriter",
    "FieldStatistics",
    "FragmentMetadata",
    "IOStats",
    "Index",
    "LanceDataset",
    "LanceFragment",
    "LanceOperation",
    "LanceScanner",
    "MergeInsertBuilder",
    "PackedBlobWriter",
    "ScanStatistics",
    "Session",
    "Transaction",
    "__version__",
    "batch_udf",
    "blob_array",
    "blob_field",
    "bytes_read_counter",
    "dataset",
    "exceptions",
    "iops_counter",
    "json_to_schema",
    "schema_to_json",
    "write_dataset",
]

# Names are imported when they are used: importing a repository, or one name, does not wait for all of pyarrow.
_HOMES = {
    "blob": ("Blob", "BlobArray", "BlobColumn", "BlobFile", "BlobType", "blob_array", "blob_field"),
    "dataset": (
        "LanceDataset",
        "LanceOperation",
        "LanceScanner",
        "MergeInsertBuilder",
        "ScanStatistics",
        "Transaction",
        "dataset",
        "write_dataset",
    ),
    "file.blob_writers": ("DedicatedBlobWriter", "PackedBlobWriter"),
    "fragment": ("FragmentMetadata", "LanceFragment"),
    "lance.blob.prepared": ("BlobDescriptor", "BlobDescriptorArrayBuilder"),
    "lance.cleanup.explanation": (
        "CleanupCandidateFile",
        "CleanupExplanation",
        "CleanupReferencedBranch",
        "CleanupStats",
    ),
    "lance.base_path": ("DatasetBasePath",),
    "lance.io_stats": ("IOStats", "bytes_read_counter", "iops_counter"),
    "lance.session": ("Session",),
    "lance.operation": ("Index",),
    "lance.statistics": ("DataStatistics", "FieldStatistics"),
    "schema": ("json_to_schema", "schema_to_json"),
    "udf": ("BatchUDF", "batch_udf"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = (
    "arrow",
    "blob",
    "commit",
    "debug",
    "delta",
    "file",
    "fragment",
    "optimize",
    "progress",
    "repo",
    "schema",
    "spark",
    "storage_version",
    "udf",
)


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(importlib.import_module(f".{_HOME_OF[name]}", __name__), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    from .missing import names_of_peer

    return names_of_peer(__name__)(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})


class _Package(ModuleType):
    def __setattr__(self, name: str, value: object) -> None:
        # An import of the module `esker.dataset` sets it as an attribute here: keep the function of that name instead.
        if name == "dataset" and isinstance(value, ModuleType):
            value = value.dataset
        super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        # As any module: a function that names it goes to other processes, where it is imported.
        return importlib.import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Package
