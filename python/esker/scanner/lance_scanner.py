"""`LanceScanner`: a scan of a dataset, as a table, a reader, batches or a data frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

import pyarrow as pa
import pyarrow.dataset

from ..exceptions import UnsupportedError
from ..lance.scan.explain import analyzed, explained
from ..lance.scan.options import ScannedFragment, ScanOptions, integer
from ..lance.scan.scan import Scan
from ..lance.version import TableVersion
from .blob_frame import BlobMode, frame_with_blobs
from .tagged_batches import tagged_batches

if TYPE_CHECKING:
    import pandas as pd


class ScannedDataset(Protocol):
    """What a scanner needs of its dataset."""

    _table: TableVersion

    @property
    def schema(self) -> pa.Schema:
        """The columns that a scan returns."""

    def get_fragments(self) -> Sequence[ScannedFragment]:
        """All fragments, in order."""

    def _at(self, table: TableVersion) -> Self:
        """The same dataset at another version."""


class LanceScanner:
    """A scan, which can run any number of times. Made by `LanceDataset.scanner`. A `pyarrow.dataset.Scanner` to
    `isinstance`.

    Args:
        dataset: The table.
        options: The options of the scan, with `json_text` as users have JSON.

    Example:
        `dataset.scanner(columns=["id"], filter="id > 10").to_reader()`
    """

    def __init__(self, dataset: ScannedDataset, options: ScanOptions) -> None:
        self._ds = dataset
        self._scan = Scan(dataset._table, options)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        # Not a real subclass: functions of pyarrow would use its C++ object, which it would lack, without a check.
        return pyarrow.dataset.Scanner  # type: ignore[no-any-return]

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows by the Arrow PyCapsule interface."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    @property
    def dataset_schema(self) -> pa.Schema:
        """The schema of the dataset."""
        return self._ds.schema

    @property
    def projected_schema(self) -> pa.Schema:
        """The schema of the rows that the scan returns."""
        return self._scan.schema

    def to_table(self) -> pa.Table:
        """The rows, in memory."""
        return self._scan.to_table()

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a reader. A batch is decoded when it is read."""
        return self._scan.to_reader()

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as batches. A batch is decoded when it is read."""
        return self._scan.to_batches()

    def to_pandas(self, *, blob_mode: BlobMode = "lazy", **kwargs: Any) -> pd.DataFrame:
        """The rows as a pandas data frame; `kwargs` go to `pyarrow.Table.to_pandas`.

        Blob columns are returned as `BlobFile` objects ("lazy"), as bytes ("bytes") or as dicts ("descriptions").
        """
        return frame_with_blobs(self._scan, blob_mode, kwargs)

    def head(self, num_rows: int) -> pa.Table:
        """The first `num_rows` rows."""
        limit, own = integer("num_rows", num_rows, least=0), self._scan.options.limit
        return self._scan.but(limit=limit if own is None else min(limit, own)).to_table()

    def count_rows(self) -> int:
        """How many rows the scan returns. Without a filter it takes the manifest's counts where it can."""
        return self._scan.count_rows()

    def explain_plan(self, verbose: bool = False) -> str:
        """The plan of the scan, as indented lines from the last step to the first.

        With `verbose` it opens the files and tells how many groups of rows the filter rules out by their statistics.
        """
        return explained(self._scan, verbose)

    def analyze_plan(self, count_rows: bool = False) -> str:
        """Runs the scan and returns its plan with its cost."""
        return analyzed(self._scan, count_rows)

    def scan_batches(self) -> Iterator[pyarrow.dataset.TaggedRecordBatch]:
        """The batches of the scan, each with rows of one fragment only, and with that fragment."""
        return tagged_batches(
            self._scan,
            {fragment.fragment_id: fragment for fragment in pinned(self._ds, self._scan.table).get_fragments()},
        )

    def take(self, indices: Any, **kwargs: Any) -> pa.Table:
        """Raises `UnsupportedError`: take from the dataset."""
        raise UnsupportedError("a scanner cannot take rows, use LanceDataset.take")

    @staticmethod
    def from_dataset(*args: Any, **kwargs: Any) -> Any:
        """Raises `UnsupportedError`: use `LanceDataset.scanner`."""
        raise UnsupportedError("a scanner is made by LanceDataset.scanner")

    from_fragment = from_batches = from_dataset

    def __reduce__(self) -> tuple[Any, ...]:
        return LanceScanner, (pinned(self._ds, self._scan.table), self._scan.options)


def pinned(dataset: ScannedDataset, table: TableVersion) -> ScannedDataset:
    """The dataset at the version `table`: the dataset itself may show another version by now."""
    return dataset if dataset._table is table else dataset._at(table)
