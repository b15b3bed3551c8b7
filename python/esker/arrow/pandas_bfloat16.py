"""bfloat16 in pandas: what a column of `BFloat16Array` becomes. Needs pandas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pyarrow as pa
from pandas.api.extensions import ExtensionArray, ExtensionDtype, register_extension_dtype

from ..exceptions import UnsupportedError
from .bfloat16 import NAME, BFloat16, BFloat16Array, bfloat16_array


@register_extension_dtype
class PandasBFloat16Type(ExtensionDtype):
    """The dtype of pandas for bfloat16, by its name `lance.bfloat16`."""

    name: ClassVar[str] = NAME
    type: ClassVar[Any] = BFloat16
    na_value: ClassVar[Any] = None

    @classmethod
    def construct_array_type(cls) -> Any:
        """The class of arrays."""
        return PandasBFloat16Array

    @classmethod
    def construct_from_string(cls, string: str) -> PandasBFloat16Type:
        """The dtype of a name.

        Raises:
            TypeError: It is another one's name.
        """
        if string == NAME:
            return cls()
        raise TypeError(f"Cannot construct a '{cls.__name__}' from '{string}'")

    def __from_arrow__(self, array: pa.Array | pa.ChunkedArray) -> PandasBFloat16Array:
        """An array of pandas of Arrow's."""
        chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
        if len(chunks) == 1:
            return PandasBFloat16Array(chunks[0])
        return PandasBFloat16Array(bfloat16_array([value for chunk in chunks for value in chunk.to_pylist()]))


class PandasBFloat16Array(ExtensionArray):
    """An array of pandas over a `BFloat16Array`, which it shares.

    Example:
        `pd.Series(PandasBFloat16Array.from_numpy(numpy_array))`
    """

    dtype = PandasBFloat16Type()

    def __init__(self, data: BFloat16Array) -> None:
        self.data = data

    @classmethod
    def _from_sequence(cls, scalars: Sequence[Any], *, dtype: Any = None, copy: bool = False) -> PandasBFloat16Array:
        del dtype, copy
        return cls(bfloat16_array(scalars))

    @classmethod
    def from_numpy(cls, array: Any) -> PandasBFloat16Array:
        """The values of a numpy array of ml_dtypes' bfloat16."""
        return cls(BFloat16Array.from_numpy(array))

    def __getitem__(self, item: Any) -> Any:
        import numpy as np

        if isinstance(item, int | np.integer):
            return self.data[int(item)].as_py()
        if isinstance(item, slice):
            return PandasBFloat16Array(self.data[item])
        places = np.asarray(item)
        if places.dtype == bool:
            return PandasBFloat16Array(self.data.filter(pa.array(places)))
        if not places.size or places.dtype.kind in "iu":
            return PandasBFloat16Array(self.data.take(pa.array(places, pa.int64())))
        raise UnsupportedError(f"expected a position, a slice, positions or a mask, found {places.dtype}")

    def __eq__(self, other: object) -> Any:
        import numpy as np

        values = self.data.to_pylist()
        others = other if isinstance(other, list | tuple | PandasBFloat16Array | np.ndarray) else [other] * len(self)
        return np.array([mine is not None and mine == theirs for mine, theirs in zip(values, others, strict=True)])

    def __len__(self) -> int:
        return len(self.data)

    @property
    def nbytes(self) -> int:
        """Bytes of the values."""
        return int(self.data.nbytes)

    def isna(self) -> Any:
        """Which values are null."""
        return self.data.is_null().to_numpy(zero_copy_only=False)

    def copy(self) -> PandasBFloat16Array:
        """The same array: Arrow's arrays do not change."""
        return PandasBFloat16Array(self.data)

    def take(self, indices: Any, *, allow_fill: bool = False, fill_value: Any = None) -> PandasBFloat16Array:
        """Values by their positions; -1 is null with `allow_fill`, else the last one."""
        del fill_value
        places = [None if allow_fill and place < 0 else int(place) % max(1, len(self)) for place in indices]
        return PandasBFloat16Array(self.data.take(pa.array(places, pa.int64())))

    @classmethod
    def _concat_same_type(cls, to_concat: Sequence[PandasBFloat16Array]) -> PandasBFloat16Array:
        return cls(bfloat16_array([value for array in to_concat for value in array.data.to_pylist()]))

    def to_numpy(self, *args: Any, **kwargs: Any) -> Any:
        """The values as numpy's; see `BFloat16Array.to_numpy`."""
        del args, kwargs
        return self.data.to_numpy()

    def __arrow_array__(self, type: Any = None) -> BFloat16Array:
        """The array of Arrow."""
        del type
        return self.data
