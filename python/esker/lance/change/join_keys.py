"""`JoinKeys`: matches the keys of two tables by value, also if their types differ.

Both sides are cast to a common type that holds every value they can share. A value that the common type cannot hold
equals no value of the other side, so it becomes null, which matches nothing. No value is rounded or truncated to match.
Keys that were null before match one another, as in pylance.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...exceptions import InvalidChangeError, SchemaMismatchError, UnsupportedError
from ..system_columns import ROW_ADDRESS, ROW_ID

SYSTEM_KEYS = (ROW_ID, ROW_ADDRESS)
"""System columns that can be keys."""
_UNITS = ("s", "ms", "us", "ns")
_DAY_S = 86_400
_MAX_DIGITS = 76


class JoinKeys:
    """The rows of other data by key. If several rows have one key, the last one counts.

    Args:
        keys: The key of each row of the other data.
        column: The key's name, for errors.

    Example:
        >>> import pyarrow as pa
        >>> from esker.lance.change.join_keys import JoinKeys
        >>> keys = JoinKeys(pa.chunked_array([pa.array([3, 300, None], pa.int64())]), "id")
        >>> keys.rows(pa.array([44, 3, None], pa.uint8())).to_pylist()
        [None, 0, 2]
    """

    def __init__(self, keys: pa.ChunkedArray, column: str) -> None:
        self._given = keys
        self._column = column
        self._null = _last_null(keys)
        self._known: dict[pa.DataType, tuple[pa.DataType, pa.Array, pa.Array]] = {}

    @classmethod
    def of(cls, other: pa.Table, left_on: str, right_on: str) -> JoinKeys:
        """The keys of other data.

        Args:
            other: The data.
            left_on: The key's column in the table.
            right_on: The key's column in the data.

        Raises:
            InvalidChangeError: The data have no such column.
        """
        if right_on not in other.column_names:
            raise InvalidChangeError(
                f"expected the key {right_on!r} among the columns of the data ({', '.join(other.column_names)})",
                column=right_on,
            )
        return cls(other[right_on], left_on)

    def check_in(self, table: pa.Schema) -> None:
        """Refuses keys that cannot be compared with those of a table, whose row ids and addresses may be keys too.

        Raises:
            SchemaMismatchError: There is no common type.
            UnsupportedError: The keys are lists or structs.
        """
        self.check(table.field(self._column).type if self._column in table.names else pa.uint64())

    def check(self, type_: pa.DataType) -> None:
        """Refuses keys that cannot be compared with those of the other data.

        Raises:
            SchemaMismatchError: There is no common type, as for text and numbers.
            UnsupportedError: The keys are lists or structs.
        """
        found = common_type(type_, self._given.type)
        if found is None:
            raise SchemaMismatchError(
                f"key {self._column!r} cannot be compared: expected {type_} as in the table, found {self._given.type}; "
                "cast it first",
                column=self._column,
                expected=str(type_),
                found=str(self._given.type),
            )
        if pa.types.is_nested(found):
            raise UnsupportedError(f"key {self._column!r} of type {found} is not supported, use a plain column")

    def rows(self, keys: pa.Array) -> pa.Array:
        """For each key of the table the number of the row of the other data with that key, null if there is none.

        Raises:
            SchemaMismatchError: As in `check`.
        """
        # Extension types need not have a hash.
        stored = _plain(keys.type)
        if stored not in self._known:
            self.check(keys.type)
            self._known[stored] = self._lookup(common_type(stored, self._given.type))
        type_, known, rows = self._known[stored]
        found = rows.take(pc.index_in(as_common(keys, type_), value_set=known, skip_nulls=True))
        return found if self._null is None else pc.if_else(_is_null(keys), self._null, found)

    def _lookup(self, type_: pa.DataType) -> tuple[pa.DataType, pa.Array, pa.Array]:
        chunks = [as_common(chunk, type_) for chunk in self._given.chunks]
        keys = pa.chunked_array(chunks, type_)
        numbered = pa.table({"key": keys, "row": pa.array(range(len(keys)), pa.int64())})
        last = numbered.filter(keys.is_valid()).group_by("key").aggregate([("row", "max")])
        return type_, _whole(last["key"]), _whole(last["row_max"])


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """A type that holds all values that keys of the two types can share, without merging any; None if there is none.

    Example:
        >>> import pyarrow as pa
        >>> from esker.lance.change.join_keys import common_type
        >>> common_type(pa.dictionary(pa.int8(), pa.string()), pa.large_string())
        DataType(large_string)
    """
    left, right = _plain(left), _plain(right)
    if left == right:
        # pyarrow looks up no halves.
        return pa.float32() if pa.types.is_float16(left) else left
    either = (left, right)
    if pa.types.is_null(left) or pa.types.is_null(right):
        return right if pa.types.is_null(left) else left
    if all(map(_is_text, either)):
        return pa.large_string()
    if all(map(_is_bytes, either)):
        return pa.large_binary()
    if any(map(pa.types.is_integer, either)) and all(pa.types.is_integer(it) or _is_float(it) for it in either):
        return pa.uint64() if pa.uint64() in either else pa.int64()
    if all(map(_is_float, either)):
        return pa.float64()
    if all(pa.types.is_decimal(it) or pa.types.is_integer(it) for it in either):
        return _common_decimal(_as_decimal(left), _as_decimal(right))
    return _common_time(left, right)


def as_common(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Values cast to a type that `common_type` returned; null where that type cannot hold the value."""
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    found = values.type
    if found == type_:
        return values
    if _is_float(found) and pa.types.is_integer(type_):
        # Fractions, NaN and values out of range become null.
        wide = values.cast(pa.float64())
        low, high = (0.0, 2.0**64) if type_ == pa.uint64() else (-(2.0**63), 2.0**63)
        whole = pc.and_(pc.equal(pc.floor(wide), wide), pc.and_(pc.greater_equal(wide, low), pc.less(wide, high)))
        return _only(wide, whole).cast(type_)
    if pa.types.is_signed_integer(found) and type_ == pa.uint64():
        return _only(values, pc.greater_equal(values, pa.scalar(0, found))).cast(type_)
    if _resolution(found) is not None and _resolution(type_) is not None:
        return _in_unit(values, type_)
    return values.cast(type_)


def _plain(type_: pa.DataType) -> pa.DataType:
    if isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _is_text(type_: pa.DataType) -> bool:
    return any(kind(type_) for kind in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def _is_bytes(type_: pa.DataType) -> bool:
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
    return any(kind(type_) for kind in kinds)


def _is_float(type_: pa.DataType) -> bool:
    return bool(pa.types.is_floating(type_))


def _as_decimal(type_: pa.DataType) -> tuple[int, int]:
    return (type_.precision, type_.scale) if pa.types.is_decimal(type_) else (20, 0)


def _common_decimal(left: tuple[int, int], right: tuple[int, int]) -> pa.DataType | None:
    scale = max(left[1], right[1])
    digits = max(left[0] - left[1], right[0] - right[1]) + scale
    if digits > _MAX_DIGITS:
        return None
    return pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(digits, scale)


def _common_time(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The coarser of the two types: a finer value that it cannot hold equals no value of the coarser type."""
    kinds = {_kind_of_time(left), _kind_of_time(right)}
    if None in kinds or not (len(kinds) == 1 or kinds == {"date", "timestamp"}):
        return None
    return max(left, right, key=_resolution)


def _kind_of_time(type_: pa.DataType) -> str | None:
    if pa.types.is_timestamp(type_):
        return "timestamp" if type_.tz is None else "instant"
    if pa.types.is_date(type_):
        return "date"
    if pa.types.is_time(type_):
        return "time"
    return "duration" if pa.types.is_duration(type_) else None


def _resolution(type_: pa.DataType) -> Any:
    """Nanoseconds between one value and the next; None if the type is not a date or time."""
    kind = _kind_of_time(type_)
    if kind is None:
        return None
    if kind == "date":
        return _DAY_S * 10**9 if pa.types.is_date32(type_) else 10**6
    return 10 ** (9 - 3 * _UNITS.index(type_.unit))


def _in_unit(values: pa.Array, type_: pa.DataType) -> pa.Array:
    steps = _resolution(type_) // _resolution(values.type)
    numbers = values.cast(pa.int32()) if values.type.bit_width == 32 else values
    numbers = numbers.cast(pa.int64())
    # A value that does not survive the division is not divisible by `steps`, and becomes null.
    coarse = pc.divide(numbers, steps)
    coarse = _only(coarse, pc.equal(pc.multiply(coarse, steps), numbers))
    return coarse.cast(pa.int32()).cast(type_) if type_.bit_width == 32 else coarse.cast(type_)


def _only(values: pa.Array, where: pa.Array) -> pa.Array:
    return pc.if_else(where, values, pa.scalar(None, values.type))


def _is_null(keys: pa.Array) -> pa.Array:
    """Where keys are null: those of a dictionary type, where their items are, too."""
    if isinstance(keys, pa.ExtensionArray):
        keys = keys.storage
    return (keys.dictionary_decode() if pa.types.is_dictionary(keys.type) else keys).is_null()


def _last_null(keys: pa.ChunkedArray) -> pa.Scalar | None:
    """The number of the last row whose key is null, None if there is none."""
    before = len(keys)
    for chunk in reversed(keys.chunks):
        before -= len(chunk)
        if chunk.null_count or pa.types.is_dictionary(chunk.type):
            last = pc.index(_is_null(chunk)[::-1], True).as_py()
            if last >= 0:
                return pa.scalar(before + len(chunk) - 1 - last, pa.int64())
    return None


def _whole(values: pa.ChunkedArray) -> pa.Array:
    joined = values.combine_chunks()
    return pa.concat_arrays(joined.chunks) if isinstance(joined, pa.ChunkedArray) else joined
