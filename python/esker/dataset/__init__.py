"""The public classes and functions of Lance tables, with the names and arguments of pylance."""

from typing import TYPE_CHECKING

from ..fragment import write_fragments
from ..lance.cleanup.automatic import AutoCleanupConfig
from ..lance.history.versions import Version
from ..lance.merge.outcome import ExecuteResult
from ..lance.operation import LANCE_COMMIT_MESSAGE_KEY, LanceOperation, Transaction
from ..lance.scan.options import ColumnOrdering, ScanStatistics
from ..lance.statistics import DatasetStats, DataStatistics, FieldStatistics
from ..missing import names_of_peer
from ..scanner import LanceScanner, ScannerBuilder
from .inventory import LanceStats
from .lance_dataset import LanceDataset, dataset
from .merge_insert import MergeInsertBuilder
from .optimizer import DatasetOptimizer
from .refs import Branch, Branches, Tag, Tags
from .rows import DeleteResult, UpdateResult
from .sql import SqlQuery, SqlQueryBuilder
from .write import write_dataset

__all__ = [
    "LANCE_COMMIT_MESSAGE_KEY",
    "AutoCleanupConfig",
    "Branch",
    "Branches",
    "ColumnOrdering",
    "DataStatistics",
    "DatasetOptimizer",
    "DatasetStats",
    "DeleteResult",
    "ExecuteResult",
    "FieldStatistics",
    "LanceDataset",
    "LanceOperation",
    "LanceScanner",
    "LanceStats",
    "MergeInsertBuilder",
    "ScanStatistics",
    "ScannerBuilder",
    "SqlQuery",
    "SqlQueryBuilder",
    "Tag",
    "Tags",
    "Transaction",
    "UpdateResult",
    "Version",
    "dataset",
    "write_dataset",
    "write_fragments",
]

if not TYPE_CHECKING:
    __getattr__ = names_of_peer(
        __name__,
        {
            "BatchUDF": "esker.udf",
            "BlobFile": "esker.blob",
            "BulkCommitResult": "esker.dataset.commits",
            "Compaction": "esker.optimize",
            "CompactionMetrics": "esker.optimize",
            "DataFile": "esker.fragment",
            "DatasetDelta": "esker.lance.history.version_delta",
            "FragmentMetadata": "esker.fragment",
            "IOStats": "esker.lance.io_stats",
            "Index": "esker.lance.operation",
            "LanceFragment": "esker.fragment",
            "LanceSchema": "esker.schema",
            "Session": "esker.lance.session",
            "batch_udf": "esker.udf",
        },
    )
