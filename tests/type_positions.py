"""Every Arrow type at every place where it can stand: written by both libraries, and read by both.

`python -m tests.type_positions 2.1 string_view,duration` goes through all nulls and nullabilities of some types; the
suite goes through a part of them. What differs from pylance is told. Left out are binaries of width 0, which pylance
writes to files of version 2.1 and later, and esker doesn't.
"""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import esker

_DAY = dt.date(2020, 2, 29)
_NOON = dt.datetime(2020, 2, 29, 12)
_UUID = b"0123456789abcdef"


def _decimals(make: Callable[..., pa.DataType], precision: int) -> tuple[pa.DataType, list[Any]]:
    return make(precision, 2), [decimal.Decimal(text) for text in ("1.00", "-2.50", "3.00")]


LEAVES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "null": (pa.null(), [None, None, None]),
    "bool": (pa.bool_(), [True, False, True]),
    "int8": (pa.int8(), [1, -2, 3]),
    "uint64": (pa.uint64(), [1, 2**63, 3]),
    "float16": (pa.float16(), [np.float16(n) for n in (1, 2, 3)]),
    "float32": (pa.float32(), [1.5, 2.5, 3.5]),
    "decimal32": _decimals(pa.decimal32, 5),
    "decimal64": _decimals(pa.decimal64, 15),
    "decimal128": _decimals(pa.decimal128, 30),
    "decimal256": _decimals(pa.decimal256, 60),
    "string": (pa.string(), ["a", "", "ccc"]),
    "large_string": (pa.large_string(), ["a", "", "ccc"]),
    "string_view": (pa.string_view(), ["a", "", "c" * 30]),
    "binary": (pa.binary(), [b"a", b"", b"ccc"]),
    "large_binary": (pa.large_binary(), [b"a", b"", b"ccc"]),
    "binary_view": (pa.binary_view(), [b"a", b"", b"c" * 30]),
    "fixed_size_binary": (pa.binary(2), [b"aa", b"bb", b"cc"]),
    "date32": (pa.date32(), [_DAY] * 3),
    "date64": (pa.date64(), [_DAY] * 3),
    "time32": (pa.time32("ms"), [dt.time(1)] * 3),
    "time64": (pa.time64("ns"), [dt.time(1)] * 3),
    "timestamp": (pa.timestamp("us"), [_NOON] * 3),
    "timestamp_utc": (pa.timestamp("ns", "UTC"), [_NOON] * 3),
    "timestamp_offset": (pa.timestamp("ms", "+02:00"), [_NOON] * 3),
    "timestamp_zone": (pa.timestamp("s", "Europe/Berlin"), [_NOON] * 3),
    "duration": (pa.duration("us"), [dt.timedelta(1)] * 3),
    "interval": (pa.month_day_nano_interval(), [pa.MonthDayNano([1, 2, 3])] * 3),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), ["a", "b", "a"]),
    "dictionary_large": (pa.dictionary(pa.int8(), pa.large_string()), ["a", "b", "a"]),
    "dictionary_numbers": (pa.dictionary(pa.uint8(), pa.int64()), [1, 2, 1]),
    "dictionary_ordered": (pa.dictionary(pa.int32(), pa.string(), True), ["a", "b", "a"]),
    "dictionary_binary": (pa.dictionary(pa.int32(), pa.binary()), [b"a", b"b", b"a"]),
    "dictionary_view": (pa.dictionary(pa.int32(), pa.string_view()), ["a", "b", "a"]),
    "run_end_encoded": (pa.run_end_encoded(pa.int32(), pa.string()), ["a", "a", "b"]),
    "bool8": (pa.bool8(), [1, 0, 1]),
    "uuid": (pa.uuid(), [_UUID] * 3),
    "tensor": (pa.fixed_shape_tensor(pa.float32(), [2]), [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
    "opaque": (pa.opaque(pa.int64(), "t", "v"), [1, 2, 3]),
}


class Case(NamedTuple):
    """A column of one type at one place."""

    place: str
    field: pa.Field
    values: pa.Array

    def table(self) -> pa.Table:
        """The column as a table."""
        return pa.Table.from_arrays([self.values], schema=pa.schema([self.field]))


def leaf(kind: str, *, with_null: bool) -> pa.Array:
    """Three values of a type, of which the second may be null."""
    type_, values = LEAVES[kind]
    values = [values[0], None if with_null else values[1], values[2]]
    if kind == "run_end_encoded":
        return pc.run_end_encode(pa.array(values))
    if kind == "dictionary_view":
        words = pa.array(["a", "b"], pa.string_view())
        return pa.DictionaryArray.from_arrays(pa.array([0, None if with_null else 1, 0], pa.int32()), words)
    if isinstance(type_, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(type_, pa.array(values, type_.storage_type))
    return pa.array(values, type_)


def cases(kind: str, *, with_null: bool, required: bool, required_items: bool) -> Iterator[Case]:
    """The type by itself and below each nested type.

    Args:
        kind: A key of `LEAVES`.
        with_null: Whether one of its values is null.
        required: Whether the column is declared not null.
        required_items: Whether the type is declared not null below the nested type.
    """
    if kind == "null" and (required or required_items):
        return
    values = leaf(kind, with_null=with_null)
    item = pa.field("item", values.type, not required_items)
    few, all_ = pa.array([0, 2, 2, 3], pa.int32()), pa.array([0, 1, 2, 3], pa.int32())
    wide = few.cast(pa.int64())

    def struct() -> pa.Array:
        return pa.StructArray.from_arrays([values], fields=[item])

    def list_() -> pa.Array:
        return pa.ListArray.from_arrays(few, values, type=pa.list_(item))

    def vector(size: int) -> pa.Array:
        return pa.FixedSizeListArray.from_arrays(values, type=pa.list_(item, size))

    def view(kind: Any, type_: pa.DataType, number: pa.DataType) -> pa.Array:
        return kind.from_arrays(pa.array([0, 2, 0], number), pa.array([2, 1, 0], number), values, type=type_)

    places: dict[str, Callable[[], pa.Array]] = {
        "alone": lambda: values,
        "struct": struct,
        "list": list_,
        "large_list": lambda: pa.LargeListArray.from_arrays(wide, values, type=pa.large_list(item)),
        "vector of 1": lambda: vector(1),
        "vector of 3": lambda: vector(3),
        "list_view": lambda: view(pa.ListViewArray, pa.list_view(item), pa.int32()),
        "large_list_view": lambda: view(pa.LargeListViewArray, pa.large_list_view(item), pa.int64()),
        "map value": lambda: pa.MapArray.from_arrays(
            all_, pa.array(["k", "l", "m"]), values, type=pa.map_(pa.field("key", pa.string(), nullable=False), item)
        ),
        "map key": lambda: pa.MapArray.from_arrays(
            all_,
            values,
            pa.array([1, 2, 3]),
            type=pa.map_(pa.field("key", values.type, nullable=False), pa.field("value", pa.int64())),
        ),
        "list of structs": lambda: pa.ListArray.from_arrays(few, struct()),
        "struct of a list": lambda: pa.StructArray.from_arrays([list_()], names=["l"]),
        "struct of a vector": lambda: pa.StructArray.from_arrays([vector(1)], names=["l"]),
        "list of vectors": lambda: pa.ListArray.from_arrays(few, vector(1)),
        "vector of vectors": lambda: pa.FixedSizeListArray.from_arrays(vector(1), 1),
        "list of lists": lambda: pa.ListArray.from_arrays(pa.array([0, 1, 3], pa.int32()), list_()),
        "vector of structs": lambda: pa.FixedSizeListArray.from_arrays(struct(), 1),
    }
    for place, make in places.items():
        if place == "map key" and (with_null or kind == "null"):
            continue
        try:
            column = make()
        except (pa.ArrowException, NotImplementedError):
            # No such array in pyarrow.
            continue
        yield Case(place, pa.field("c", column.type, not required), column)


def difference(case: Case, version: str, folder: str) -> str | None:
    """What the libraries disagree about, None if nothing.

    What pylance refuses may be written by esker, as long as both then read it.
    """
    table = case.table()
    theirs, ours = f"{folder}/theirs", f"{folder}/ours"
    written = _told(lambda: lance.write_dataset(table, theirs, data_storage_version=version))
    expected = _told(lambda: lance.dataset(theirs).to_table()) if written[0] else written
    done = _told(lambda: esker.write_dataset(table, ours, data_storage_version=version))
    if not done[0]:
        return f"refused: {done[1]}" if expected[0] else None
    found = _told(lambda: esker.dataset(ours).to_table())
    if not found[0]:
        return f"cannot be read: {found[1]}"
    if not expected[0]:
        return None
    if not found[1].equals(expected[1]):
        return f"expected {expected[1]}, found {found[1]}"
    for what, read in (
        ("ours by pylance", lambda: lance.dataset(ours).to_table()),
        ("theirs by esker", lambda: esker.dataset(theirs).to_table()),
    ):
        other = _told(read)
        if not other[0] or not other[1].equals(expected[1]):
            return f"{what}: {other[1]}"
    return None


def _told(work: Callable[[], Any]) -> tuple[bool, Any]:
    try:
        return True, work()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # pylance's panics are no exceptions of Python's usual kind
        return False, f"{type(error).__name__}: {error}"


def main(version: str, kinds: list[str]) -> None:
    """Tells of all differences."""
    for kind in kinds:
        for with_null, required, required_items in itertools.product((False, True), repeat=3):
            for case in cases(kind, with_null=with_null, required=required, required_items=required_items):
                with tempfile.TemporaryDirectory() as folder:
                    found = difference(case, version, folder)
                if found is not None:
                    print(version, case.field, with_null, "|", found[:300])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2].split(",") if len(sys.argv) > 2 else list(LEAVES))
