"""Fragments: the horizontal slices of a table, each with its own data files and deletion file."""

from typing import TYPE_CHECKING

from ..lance.data_file import DataFile
from ..lance.deletion_file import DeletionFile
from ..lance.fragment_metadata import FragmentMetadata
from ..lance.row_lineage import RowDatasetVersionMeta, RowIdMeta, RowIdSequence
from ..missing import names_of_peer
from .lance_fragment import LanceFragment
from .writing import write_fragments

__all__ = [
    "DataFile",
    "DeletionFile",
    "FragmentMetadata",
    "LanceFragment",
    "RowDatasetVersionMeta",
    "RowIdMeta",
    "RowIdSequence",
    "write_fragments",
]

if not TYPE_CHECKING:
    __getattr__ = names_of_peer(
        __name__,
        {
            "BatchUDF": "esker.udf",
            "DEFAULT_MAX_BYTES_PER_FILE": "esker.lance.write.request",
            "FragmentSession": "esker.fragment.session",
            "FragmentWriteProgress": "esker.progress",
            "NoopFragmentWriteProgress": "esker.progress",
        },
    )
