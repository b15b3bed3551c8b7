"""bfloat16 as an Arrow extension type: the upper half of a float32, two bytes little endian, as `lance.bfloat16`.

```
float32   s eeeeeeee mmmmmmm|mmmmmmmmmmmmmmmm
bfloat16  s eeeeeeee mmmmmmm                    rounded to the nearest, ties to even
```
"""

from __future__ import annotations

import functools
import importlib
import math
import struct
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..exceptions import InvalidArgumentError, UnsupportedError
from .extension_types import register

NAME = "lance.bfloat16"
_SIZE = 2


def _dtype() -> Any:
    """numpy's dtype of bfloat16, which the package ml_dtypes brings."""
    try:
        from ml_dtypes import bfloat16
    except ImportError:
        raise UnsupportedError("bfloat16 in numpy needs the package ml_dtypes: pip install ml_dtypes") from None
    return bfloat16


def _float32(value: float) -> bytes:
    """The nearest float32: an infinite one for what is beyond the largest."""
    number = math.ldexp(value, 0)  # a float of any number, but of no text
    try:
        return struct.pack("<f", number)
    except OverflowError:
        return struct.pack("<f", math.copysign(math.inf, number))


@functools.total_ordering
class BFloat16:
    """One bfloat16 value.

    Args:
        value: A number, rounded to the nearest bfloat16.

    Raises:
        TypeError: It is no number.

    Example:
        >>> from esker.arrow import BFloat16
        >>> BFloat16(1.124565), BFloat16(1.1) > BFloat16(1.0)
        (1.125, True)
    """

    def __init__(self, value: float) -> None:
        (bits,) = struct.unpack("<I", _float32(value))
        if value == value:
            # Ties go to the even one; what rounds beyond the largest becomes infinite, as its bits then say.
            bits += 0x7FFF + (bits >> 16 & 1)
        else:
            bits |= 0x400000
        self._bits = bits >> 16 & 0xFFFF

    @classmethod
    def from_bytes(cls, bytes: bytes) -> BFloat16:
        """The value of two bytes, little endian.

        Raises:
            InvalidArgumentError: There are not two.
        """
        if len(bytes) != _SIZE:
            raise InvalidArgumentError(f"expected {_SIZE} bytes of a bfloat16, found {len(bytes)}")
        made = cls.__new__(cls)
        made._bits = int.from_bytes(bytes, "little")
        return made

    def to_bytes(self) -> bytes:
        """Its two bytes, little endian."""
        return int(self._bits).to_bytes(_SIZE, "little")

    def as_float(self) -> float:
        """The same number as a float."""
        (value,) = struct.unpack("<f", (self._bits << 16).to_bytes(4, "little"))
        return float(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BFloat16) and self.as_float() == other.as_float()

    def __lt__(self, other: object) -> bool:
        return self.as_float() < other.as_float() if isinstance(other, BFloat16) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.as_float())

    def __repr__(self) -> str:
        value = self.as_float()
        return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)


class BFloat16Array(pa.ExtensionArray):
    """An array of bfloat16 values; `bfloat16_array` makes one of numbers, `from_numpy` of a numpy array."""

    def __repr__(self) -> str:
        return f"<lance.arrow.BFloat16Array object at 0x{id(self):016x}>\n{self}"

    def __str__(self) -> str:
        return "[\n" + ",\n".join(f"  {value}" for value in self.to_pylist()) + "\n]" if len(self) else "[]"

    def to_numpy(self, zero_copy_only: bool = False) -> Any:
        """The values as a numpy array of ml_dtypes' bfloat16, without a copy.

        Args:
            zero_copy_only: Of no effect: nothing is copied.

        Raises:
            InvalidArgumentError: There are nulls, which numpy cannot hold.
        """
        del zero_copy_only
        if self.null_count:
            raise InvalidArgumentError("Cannot convert null values to numpy: expected none, fill or drop them")
        import numpy as np

        data = self.storage.buffers()[1]
        if data is None:
            return np.empty(0, dtype=_dtype())
        return np.frombuffer(data, dtype=_dtype(), count=len(self), offset=self.offset * _SIZE)

    @classmethod
    def from_numpy(cls, array: Any) -> BFloat16Array:
        """The values of a numpy array of ml_dtypes' bfloat16.

        Args:
            array: One dimension.

        Raises:
            InvalidArgumentError: It has another dtype or shape.

        Example:
            `BFloat16Array.from_numpy(np.array([1.0, 2.5], dtype=ml_dtypes.bfloat16))`
        """
        if array.dtype != _dtype():
            raise InvalidArgumentError(f"Cannot convert non-bfloat16 values to BFloat16Array: found {array.dtype}")
        if array.ndim != 1:
            raise InvalidArgumentError(f"Cannot convert multi-dimensional array to BFloat16Array: found {array.ndim}")
        import numpy as np

        data = pa.py_buffer(np.ascontiguousarray(array).tobytes())
        return _of_storage(pa.Array.from_buffers(pa.binary(_SIZE), len(array), [None, data]))


class BFloat16Scalar(pa.ExtensionScalar):
    """A value of a `BFloat16Array`."""

    def as_py(self, **kwargs: Any) -> BFloat16 | None:
        """The value, None if it is null."""
        return None if self.value is None else BFloat16.from_bytes(self.value.as_py(**kwargs))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, BFloat16Scalar):
            return self.as_py() == other.as_py()
        if other is None or isinstance(other, BFloat16):
            return self.as_py() == other
        as_bytes = getattr(other, "tobytes", None)
        same = getattr(getattr(other, "dtype", None), "name", None) == "bfloat16"
        return bool(same and as_bytes is not None and self.as_py() == BFloat16.from_bytes(as_bytes()))

    def __hash__(self) -> int:
        return hash(self.as_py())


class BFloat16Type(pa.ExtensionType):
    """The Arrow type of bfloat16: `lance.bfloat16` over two bytes of fixed size.

    Example:
        >>> from esker.arrow import BFloat16Type
        >>> BFloat16Type().storage_type
        FixedSizeBinaryType(fixed_size_binary[2])
    """

    def __init__(self) -> None:
        super().__init__(pa.binary(_SIZE), NAME)

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> BFloat16Type:
        del storage_type, serialized
        return cls()

    def __arrow_ext_class__(self) -> type[BFloat16Array]:
        return BFloat16Array

    def __arrow_ext_scalar_class__(self) -> type[BFloat16Scalar]:
        return BFloat16Scalar

    def to_pandas_dtype(self) -> Any:
        """The dtype of pandas, `lance.bfloat16`."""
        # By its name: only who uses pandas loads it.
        return importlib.import_module(f"{__package__}.pandas_bfloat16").PandasBFloat16Type()


register(BFloat16Type())


def _of_storage(storage: pa.Array) -> BFloat16Array:
    made: BFloat16Array = pa.ExtensionArray.from_storage(BFloat16Type(), storage)
    return made


def bfloat16_array(values: Iterable[float | BFloat16 | None]) -> BFloat16Array:
    """An array of numbers as bfloat16.

    Args:
        values: Numbers, each rounded to the nearest bfloat16; None is null.

    Example:
        >>> from esker.arrow import bfloat16_array
        >>> bfloat16_array([1.1, None]).to_pylist()
        [1.1015625, None]
    """
    found = (value if value is None or isinstance(value, BFloat16) else BFloat16(value) for value in values)
    encoded = [None if value is None else value.to_bytes() for value in found]
    return _of_storage(pa.array(encoded, pa.binary(_SIZE)))


def cast(arr: pa.Array, target_type: Any, *args: Any, **kwargs: Any) -> pa.Array:
    """Casts an array as `pyarrow.compute.cast` does, and also from and to bfloat16, alone or in lists of a fixed size.

    Args:
        arr: The array.
        target_type: A type of Arrow, or its name; "bfloat16" and "bf16" are names, too.
        *args: For `pyarrow.compute.cast`.
        **kwargs: Likewise.

    Raises:
        InvalidArgumentError: Numbers that are no floats, or lists of another size.

    Example:
        `esker.arrow.cast(pa.array([1.0, 2.0]), "bfloat16")`
    """
    if isinstance(arr.type, BFloat16Type):
        wanted = pa.type_for_alias(target_type) if isinstance(target_type, str) else target_type
        if not pa.types.is_floating(wanted):
            raise InvalidArgumentError(f"Only support casting bfloat16 array to floating array, got: {target_type}")
        return _to_floats(arr, wanted)
    if isinstance(target_type, BFloat16Type) or target_type in ("bfloat16", "bf16"):
        if not pa.types.is_floating(arr.type):
            raise InvalidArgumentError(f"Only support casting floating array to bfloat16 array, got: {arr.type}")
        return _of_floats(arr)
    if pa.types.is_fixed_size_list(arr.type) and pa.types.is_fixed_size_list(target_type):
        size = target_type.list_size
        if arr.type.list_size != size:
            raise InvalidArgumentError(
                "Only support casting fixed size list to fixed size list with the same size, "
                f"got: {arr.type} to {target_type}"
            )
        items = arr.values.slice(arr.offset * size, len(arr) * size)
        mask = arr.is_null() if arr.null_count else None
        cast_items = cast(items, target_type.value_type)
        return pa.FixedSizeListArray.from_arrays(values=cast_items, list_size=size, mask=mask)
    return pc.cast(arr, target_type, *args, **kwargs)


def _to_floats(arr: BFloat16Array, wanted: pa.DataType) -> pa.Array:
    """As floats: the two bytes are the upper half of a float32."""
    import numpy as np

    data = arr.storage.buffers()[1]
    halves = np.frombuffer(data, "<u2", len(arr), arr.offset * _SIZE) if data is not None else np.empty(0, "<u2")
    floats = (halves.astype("<u4") << 16).view("<f4")
    mask = arr.is_null().to_numpy(zero_copy_only=False) if arr.null_count else None
    return pa.array(floats, pa.float32(), mask=mask).cast(wanted, safe=False)


def _of_floats(arr: pa.Array) -> BFloat16Array:
    import numpy as np

    floats = pc.fill_null(arr.cast(pa.float32(), safe=False), 0.0).to_numpy(zero_copy_only=False)
    bits = np.ascontiguousarray(floats, "<f4").view("<u4")
    rounded = (bits.astype(np.uint64) + 0x7FFF + (bits >> 16 & 1)) >> 16
    halves = np.where(np.isnan(floats), bits >> 16 | 0x40, rounded).astype("<u2")
    storage = pa.Array.from_buffers(pa.binary(_SIZE), len(halves), [None, pa.py_buffer(halves.tobytes())])
    if arr.null_count:
        storage = pc.if_else(arr.is_valid(), storage, pa.scalar(None, storage.type))
    return _of_storage(storage)
