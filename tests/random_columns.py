"""Random columns for files of versions 2.1 and 2.2: types in each other, nulls, runs, and keys that steer encoders."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

LEAVES = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.null()),
    *(pa.string(), pa.string(), pa.string(), pa.binary(), pa.large_string(), pa.large_binary()),
    *(pa.date32(), pa.date64(), pa.time32("s"), pa.time64("us"), pa.timestamp("us"), pa.timestamp("ns", "UTC")),
    *(pa.duration("ms"), pa.decimal128(20, 3), pa.decimal256(50, 4)),
    *(pa.binary(1), pa.binary(16), pa.binary(40), pa.binary(300)),
    *(pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.int64())),
]
ITEMS = [pa.float32(), pa.float64(), pa.int8(), pa.float16(), pa.bool_(), pa.int32(), pa.binary(3)]

KEYS = {
    "lance-encoding:structural-encoding": ["miniblock", "fullzip"],
    "lance-encoding:compression": ["lz4", "zstd", "none", "fsst"],
    "lance-encoding:bss": ["on", "off"],
    "lance-encoding:rle-threshold": ["0.0", "1.0"],
    "lance-encoding:dict-divisor": ["1", "2", "100000"],
    "lance-encoding:dict-size-ratio": ["0.0001", "1.0"],
    "lance-encoding:dict-values-compression": ["none", "lz4", "zstd"],
}

STYLES = ["any", "any", "runs", "few", "one"]


class RandomColumns:
    """A source of columns, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.RandomState(seed)

    def type(self, version: str, depth: int) -> pa.DataType:
        """A type of at most `depth` levels of nesting that the peer may write in `version`."""
        kind = self.random.random()
        if depth == 0 or kind < 0.4:
            if self.random.random() < 0.8:
                return self.random.choice(LEAVES)
            vector = pa.list_(self.random.choice(ITEMS), self.random.choice([1, 2, 3, 16, 128, 300]))
            return vector if self.random.random() < 0.8 else pa.list_(vector, self.random.choice([1, 3]))
        if kind < 0.62:
            return pa.list_(self.type(version, depth - 1))
        if kind < 0.7:
            return pa.large_list(self.type(version, depth - 1))
        if kind < 0.88 or version == "2.1":
            return pa.struct(
                [pa.field(f"f{i}", self.type(version, depth - 1)) for i in range(self.random.randint(1, 3))]
            )
        if kind < 0.95:
            return pa.map_(self.random.choice([pa.string(), pa.int32()]), self.type(version, depth - 1))
        structs = pa.struct([pa.field("x", self.type(version, 0)), pa.field("y", pa.int32())])
        return pa.list_(structs, self.random.choice([1, 2, 3]))

    def metadata(self, data_type: pa.DataType) -> dict[str, str]:
        """Some of the keys that steer an encoder."""
        chosen = {key: self.random.choice(values) for key, values in KEYS.items() if self.random.random() < 0.2}
        if pa.types.is_struct(data_type) and self.random.random() < 0.5:
            chosen["packed"] = "true"
        return chosen

    def values(self, data_type: pa.DataType, length: int, nulls: float, style: str) -> pa.Array:
        """`length` values, each null with the probability `nulls`."""
        mask = self.numbers.random_sample(length) < nulls
        if pa.types.is_null(data_type):
            return pa.nulls(length)
        if pa.types.is_dictionary(data_type):
            items = self.values(data_type.value_type, 1 if style == "one" else 90, 0.0, "any").unique()
            keys = pa.array(self.numbers.randint(0, len(items), size=length), mask=mask)
            return pa.DictionaryArray.from_arrays(keys.cast(data_type.index_type), items)
        if pa.types.is_struct(data_type):
            fields = [self.values(f.type, length, self._below(nulls), style) for f in data_type]
            mask_array = pa.array(mask) if mask.any() else None
            return pa.StructArray.from_arrays(fields, fields=list(data_type), mask=mask_array)
        if pa.types.is_fixed_size_list(data_type):
            items = self.values(
                data_type.value_type, length * data_type.list_size, self.random.choice([0, 0, 0.2]), style
            )
            mask_array = pa.array(mask) if mask.any() else None
            return pa.FixedSizeListArray.from_arrays(items, data_type.list_size, mask=mask_array)
        if pa.types.is_nested(data_type):
            return self._lists(data_type, length, mask, nulls, style)
        return self._leaves(data_type, length, mask, style)

    def _below(self, nulls: float) -> float:
        return self.random.choice([0.0, 0.2, nulls])

    def _lists(self, data_type: pa.DataType, length: int, mask: np.ndarray, nulls: float, style: str) -> pa.Array:
        most = self.random.choice([0, 1, 3, 10])
        lengths = self.numbers.randint(self.random.choice([0, min(1, most)]), most + 1, size=length)
        if self.random.random() < 0.1 and length:
            lengths[self.numbers.randint(0, length)] = 5000  # A row over many chunks.
        lengths[mask] = 0
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        offsets = pa.array(ends, mask=np.concatenate([mask, [False]]))
        total = int(ends[-1])
        if pa.types.is_map(data_type):
            keys = self.values(data_type.key_type, total, 0.0, "any")
            items = self.values(data_type.item_type, total, self._below(nulls), style)
            return pa.MapArray.from_arrays(offsets.cast(pa.int32()), keys, items, type=data_type)
        items = self.values(data_type.value_type, total, self._below(nulls), style)
        if pa.types.is_large_list(data_type):
            return pa.LargeListArray.from_arrays(offsets, items)
        return pa.ListArray.from_arrays(offsets.cast(pa.int32()), items)

    def _leaves(self, data_type: pa.DataType, length: int, mask: np.ndarray, style: str) -> pa.Array:
        numbers = self.numbers
        if pa.types.is_integer(data_type):
            high = min(self.random.choice([1, 2, 5, 20, 62]), data_type.bit_width - 1)
            drawn = numbers.randint(0, 2**high, size=length, dtype=np.int64)
            return pa.array(self._styled(drawn, style), mask=mask).cast(data_type)
        if pa.types.is_floating(data_type):
            drawn = self._styled(numbers.standard_normal(length) * 100, style)
            return pa.array(drawn.astype(data_type.to_pandas_dtype()), mask=mask)
        if pa.types.is_boolean(data_type):
            return pa.array(self._styled(numbers.random_sample(length) < 0.5, style), mask=mask)
        if pa.types.is_decimal(data_type):
            drawn = self._styled(numbers.randint(0, 10**6, size=length), style)
            return pa.array(drawn, mask=mask).cast(pa.decimal128(20, 0)).cast(data_type)
        if pa.types.is_temporal(data_type):
            drawn = self._styled(numbers.randint(0, 80_000, size=length), style)
            drawn = drawn * 86_400_000 if pa.types.is_date64(data_type) else drawn
            return (
                pa.array(drawn, mask=mask).cast(pa.int32() if data_type.bit_width == 32 else pa.int64()).view(data_type)
            )
        drawn = np.empty(length, object)
        if pa.types.is_fixed_size_binary(data_type):
            drawn[:] = [numbers.bytes(data_type.byte_width) for _ in range(length)]
        else:
            longest = self.random.choice([0, 3, 12, 40, 300, 1500] if length < 2000 else [0, 3, 12])
            texts = (f"{numbers.randint(0, 2**31):x}é" + "lorem ipsum dolor "[: longest % 19] for _ in range(length))
            drawn[:] = [text * (1 + longest // 20) if longest else "" for text in texts]
        chosen: Sequence[object] = list(self._styled(drawn, style))
        if pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type):
            chosen = [str(text).encode() for text in chosen]
        return pa.array([None if null else value for value, null in zip(chosen, mask, strict=True)], data_type)

    def _styled(self, drawn: np.ndarray, style: str) -> np.ndarray:
        """The values as they are, in runs, a few of them, or one of them."""
        length = len(drawn)
        if style == "any" or not length:
            return drawn
        if style == "runs":
            return drawn[np.repeat(np.arange(length), self.numbers.randint(1, 50, size=length))[:length]]
        few = 1 if style == "one" else self.random.choice([1, 3, 20])
        return drawn[self.numbers.randint(0, min(length, few), size=length)]
