"""The methods of pyarrow's datasets that read a table into memory, and the making of one from pydantic models."""

from __future__ import annotations

import os
import re
from typing import Any, Self, cast

import pyarrow as pa
import pyarrow.dataset

from ..arrow.pydantic_models import models_to_table
from ..lance.handle import DatasetHandle
from ..lance.scan.predicate import Filter
from ..lance.write.request import WriteArguments
from ..lance.write.table import write_given


class InMemoryApi(DatasetHandle):
    """The methods of pyarrow's `Dataset` whose result is a dataset in memory."""

    def filter(self, expression: Filter) -> pyarrow.dataset.InMemoryDataset:
        """The rows for which a filter is true, read into memory, as a dataset of pyarrow's.

        A scan with the filter (`to_table`, `to_batches`, `scanner`) holds no more than a batch.

        Args:
            expression: SQL, or an expression of pyarrow's.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1, 2, 3]}), "memory://doc-filter")
            >>> dataset.filter("id > 1").count_rows()
            2
        """
        return pyarrow.dataset.InMemoryDataset(self._whole(filter=expression))

    def sort_by(self, sorting: str | list[tuple[str, str]], **kwargs: Any) -> pyarrow.dataset.InMemoryDataset:
        """The rows in another order, read into memory, as a dataset of pyarrow's.

        Args:
            sorting: A column, in ascending order, or pairs of a column and "ascending" or "descending".
            **kwargs: Options of `pyarrow.Table.sort_by`.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [2, 3, 1]}), "memory://doc-sort-by")
            >>> dataset.sort_by([("id", "descending")]).to_table().to_pydict()
            {'id': [3, 2, 1]}
        """
        return pyarrow.dataset.InMemoryDataset(self._whole().sort_by(sorting, **kwargs))

    def join_asof(
        self,
        right_dataset: pyarrow.dataset.Dataset,
        on: str,
        by: str | list[str],
        tolerance: int,
        right_on: str | None = None,
        right_by: str | list[str] | None = None,
    ) -> pyarrow.dataset.InMemoryDataset:
        """For each row the row of another dataset whose key is nearest, of those within a tolerance; both are read into
        memory. Rows must ascend by the key.

        Args:
            right_dataset: The other one, of pyarrow or a `LanceDataset`.
            on: The key.
            by: Columns that must be equal.
            tolerance: How far the other key may be: later if positive, earlier if negative.
            right_on: The key's name in the other dataset, if it differs.
            right_by: The other names of `by`, likewise.

        Example:
            >>> import esker, pyarrow as pa
            >>> left = esker.write_dataset(pa.table({"t": [1, 5], "g": [0, 0]}), "memory://doc-asof-left")
            >>> right = pa.dataset.dataset(pa.table({"t": [2, 9], "g": [0, 0], "v": [20, 90]}))
            >>> left.join_asof(right, on="t", by="g", tolerance=2).to_table()["v"].to_pylist()
            [20, None]
        """
        left = self._whole()
        # Columns, not the dataset: pyarrow would use the C++ object of ours.
        right = right_dataset.to_table()
        joined = left.join_asof(right, on=on, by=by, tolerance=tolerance, right_on=right_on, right_by=right_by)
        return pyarrow.dataset.InMemoryDataset(joined)

    def _whole(self, **options: Any) -> pa.Table:
        table: pa.Table = self.to_table(**options)  # type: ignore[attr-defined]
        return table

    @classmethod
    def from_pydantic_model(
        cls,
        model_class: Any,
        data: list[Any],
        uri: str | os.PathLike[str] | None = None,
        mode: str = "create",
        **kwargs: Any,
    ) -> Self:
        """Writes instances of a pydantic model as rows; the columns are those of the model's annotations.

        Args:
            model_class: The model: a subclass of `pydantic.BaseModel` of pydantic 2.
            data: Its instances.
            uri: The table; by default the model's name in snake case.
            mode: The mode of `write_dataset`.
            **kwargs: Further arguments of `write_dataset`.

        Raises:
            TypeError: The model or an instance is something else, or an annotation has no Arrow type.
            InvalidArgumentError: There are no instances.

        Example:
            >>> import esker, pydantic
            >>> class Point(pydantic.BaseModel):
            ...     x: int
            ...     note: str | None = None
            >>> dataset = esker.LanceDataset.from_pydantic_model(Point, [Point(x=1)], "memory://doc-pydantic")
            >>> dataset.to_table().to_pylist()
            [{'x': 1, 'note': None}]
        """
        table = models_to_table(model_class, data)
        if uri is None:
            uri = re.sub(r"(?<!^)(?=[A-Z])", "_", model_class.__name__).lower()
        return cls._of(write_given(uri, table, None, mode, cast(WriteArguments, kwargs)))
