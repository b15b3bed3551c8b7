"""Versioned Lance tables, with the names and arguments of pylance.

>>> import esker, pyarrow as pa
>>> dataset = esker.write_dataset(pa.table({"id": [1, 2, 3]}), "memory://doc-first")
>>> dataset.to_table(filter="id >= 2").num_rows
2
"""

from . import exceptions
from ._native import __version__
from .blob import Blob, BlobArray, BlobColumn, BlobFile, BlobType, blob_array, blob_field
from .dataset import LanceDataset, LanceOperation, LanceScanner, Transaction, dataset, write_dataset
from .fragment import FragmentMetadata, LanceFragment
from .lance.base_path import DatasetBasePath
from .lance.io_stats import IOStats, Session
from .schema import json_to_schema, schema_to_json
from .udf import BatchUDF, batch_udf

__all__ = [
    "BatchUDF",
    "Blob",
    "BlobArray",
    "BlobColumn",
    "BlobFile",
    "BlobType",
    "DatasetBasePath",
    "FragmentMetadata",
    "IOStats",
    "LanceDataset",
    "LanceFragment",
    "LanceOperation",
    "LanceScanner",
    "Session",
    "Transaction",
    "__version__",
    "batch_udf",
    "blob_array",
    "blob_field",
    "dataset",
    "exceptions",
    "json_to_schema",
    "schema_to_json",
    "write_dataset",
]
