"""Statistics of a data file: gathered while it is written, and spelled as the JSON of its `add` action.

Bounds are kept of the columns that `dataSkippingStatsColumns` names, else of the first `dataSkippingNumIndexedCols`
leaves (32). Text is cut at 32 characters, a maximum rounded up; times are milliseconds of UTC, a maximum rounded up; a
column with a NaN has no bounds, since writers do not agree on where NaN sorts; bytes, booleans, lists and maps have
counts of nulls only, as in Spark.

Spec: "Per-file Statistics".
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..definition.statistics_columns import Path

MAX_CHARACTERS = 32
_LAST = "\U0010ffff"


def cut_minimum(text: str) -> str:
    """A text that is not above the given one, of 32 characters at most.

    Example:
        >>> from esker.delta.write.file_statistics import cut_minimum
        >>> len(cut_minimum("x" * 100))
        32
    """
    return text[:MAX_CHARACTERS]


def cut_maximum(text: str) -> str | None:
    """A text that is not below the given one, of 32 characters at most, None if there is none.

    Example:
        >>> from esker.delta.write.file_statistics import cut_maximum
        >>> cut_maximum("y" * 100)[-2:]
        'yz'
    """
    if len(text) <= MAX_CHARACTERS:
        return text
    kept = text[:MAX_CHARACTERS].rstrip(_LAST)
    if not kept:
        return None
    code = ord(kept[-1]) + 1
    # Surrogates are not characters: skip them.
    return kept[:-1] + chr(0xE000 if code == 0xD800 else code)


class _Leaf:
    """The statistics of one leaf so far."""

    def __init__(self, kind: pa.DataType) -> None:
        types = pa.types
        self.bounded = not (
            types.is_boolean(kind)
            or types.is_binary(kind)
            or types.is_large_binary(kind)
            or types.is_nested(kind)
            or types.is_null(kind)
        )
        self.floating = types.is_floating(kind)
        self.nulls = 0
        self.lowest: Any = None
        self.highest: Any = None

    def add(self, values: pa.Array) -> None:
        self.nulls += values.null_count
        if not self.bounded or values.null_count == len(values):
            return
        if self.floating and pc.any(pc.is_nan(values)).as_py():
            self.bounded, self.lowest, self.highest = False, None, None
            return
        found = pc.min_max(values)
        if pa.types.is_timestamp(values.type):
            # As numbers: Python's datetime ends with the year 9999.
            low, high = (found[name].cast(pa.int64()).as_py() for name in ("min", "max"))
        elif pa.types.is_date(values.type):
            low, high = (found[name].cast(pa.int32()).as_py() for name in ("min", "max"))
        else:
            low, high = found["min"].as_py(), found["max"].as_py()
        self.lowest = low if self.lowest is None else min(self.lowest, low)
        self.highest = high if self.highest is None else max(self.highest, high)


class FileStatistics:
    """The statistics of one data file in the making.

    Args:
        columns: The leaves that they are kept of.
        names: For each path of the logical schema the name that its last part has in the file; those not in it are
            the same in both.
        tight: Whether `tightBounds` is written, as tables with deletion vectors have it.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.write.file_statistics import FileStatistics
        >>> found = FileStatistics([("x",)])
        >>> found.add(pa.record_batch({"x": [1, None, 3]}))
        >>> found.json()
        '{"numRecords":3,"minValues":{"x":1},"maxValues":{"x":3},"nullCount":{"x":1}}'
    """

    def __init__(self, columns: list[Path], names: Mapping[Path, str] | None = None, *, tight: bool = False) -> None:
        self._columns = columns
        self._names = names or {}
        self._tight = tight
        self._leaves: dict[Path, _Leaf] = {}
        self._kinds: dict[Path, pa.DataType] = {}
        self.rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Rows of the file, with logical names."""
        self.rows += batch.num_rows
        for path in self._columns:
            values = batch.column(path[0])
            for name in path[1:]:
                # The fields of a null struct count as null.
                values = values.flatten()[values.type.get_field_index(name)]
            if path not in self._leaves:
                self._leaves[path] = _Leaf(values.type)
                self._kinds[path] = values.type
            self._leaves[path].add(values)

    def json(self) -> str:
        """The statistics as the log has them."""
        lows: dict[str, Any] = {}
        highs: dict[str, Any] = {}
        nulls: dict[str, Any] = {}
        for path, leaf in self._leaves.items():
            self._put(nulls, path, leaf.nulls)
            if leaf.lowest is not None:
                self._put(lows, path, _bound(leaf.lowest, self._kinds[path], up=False))
                self._put(highs, path, _bound(leaf.highest, self._kinds[path], up=True))
        whole: dict[str, Any] = {"numRecords": self.rows}
        if self._columns:
            whole |= {"minValues": lows, "maxValues": highs, "nullCount": nulls}
        if self._tight:
            whole["tightBounds"] = True
        return encode(whole)

    def _put(self, tree: dict[str, Any], path: Path, value: Any) -> None:
        if value is None:
            return
        for depth in range(1, len(path)):
            tree = tree.setdefault(self._names.get(path[:depth], path[depth - 1]), {})
        tree[self._names.get(path, path[-1])] = value


def _bound(value: Any, kind: pa.DataType, *, up: bool) -> Any:
    """A bound as JSON has it, None where it has none."""
    if isinstance(value, str):
        return cut_maximum(value) if up else cut_minimum(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if pa.types.is_timestamp(kind):
        milliseconds = -(-value // 1000) if up else value // 1000
        return _moment(milliseconds, zoned=kind.tz is not None)
    if pa.types.is_date(kind):
        text = _moment(value * 86_400_000, zoned=False)
        return text[:10] if text is not None else None
    return value


def _moment(milliseconds: int, *, zoned: bool) -> str | None:
    try:
        moment = datetime(1970, 1, 1) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds") + ("Z" if zoned else "")


def encode(value: Any) -> str:
    """JSON, with decimals as exact numbers.

    Example:
        >>> from decimal import Decimal
        >>> from esker.delta.write.file_statistics import encode
        >>> encode({"d": Decimal("-1.50")})
        '{"d":-1.50}'
    """
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{encode(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, Decimal):
        return format(value, "f")
    return json.dumps(value)


def decode(text: str | None) -> dict[str, Any]:
    """Statistics as the log has them; what is none is left out. Decimals stay as they are spelled.

    Example:
        >>> from esker.delta.write.file_statistics import decode
        >>> decode('{"numRecords": 3, "minValues": {"x": 1.50, "y": NaN}}'), decode("{nope"), decode(None)
        ({'numRecords': 3, 'minValues': {'x': Decimal('1.50')}}, {}, {})
    """
    try:
        found = json.loads(text or "{}", parse_float=_decimal, parse_constant=lambda _: _NO_NUMBER)
    except (ValueError, RecursionError):
        return {}
    made: dict[str, Any] = _numbers(found) if isinstance(found, dict) else {}
    return {key: value for key, value in made.items() if key not in _BY_COLUMN or isinstance(value, dict)}


_BY_COLUMN = ("minValues", "maxValues", "nullCount")
_DIGITS = 400
_NO_NUMBER = object()
"""What some writers have in the place of a number, and JSON does not: NaN and infinities."""


def _decimal(text: str) -> Any:
    # No column holds larger ones, and they are spelled with all of their digits.
    found = Decimal(text)
    return found if abs(found.adjusted()) < _DIGITS else _NO_NUMBER


def _numbers(found: dict[str, Any]) -> dict[str, Any]:
    known = {key: _numbers(value) if isinstance(value, dict) else value for key, value in found.items()}
    return {key: value for key, value in known.items() if value is not _NO_NUMBER}
