"""Files whose writers kept Arrow types that the table does not have, such as views: filters find their rows."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pa_fs
import pyarrow.parquet as pq
import pytest

from esker.delta import DeltaTable, write_deltalake
from tests.delta_logs import PROTOCOL, add, commit, metadata

UTC = dt.UTC


def _change(path: Path, how: str) -> None:
    peer = deltalake.DeltaTable(path)
    if how == "delete":
        peer.delete("id = 4")
    if how == "update":
        peer.update(updates={"p": "'d'"}, predicate="id = 4")
    if how == "merge":
        source = pa.table({"id": [4], "p": ["d"], "b": [b"w"]})
        peer.merge(source, "t.id = s.id", "s", "t").when_matched_update_all().execute()
    if how == "polars":
        frame = polars.DataFrame({"id": [5, 6], "p": ["a", "z"], "b": [b"x", b"zz"]})
        frame.write_delta(str(path), mode="append")


@pytest.mark.parametrize("how", ["delete", "update", "merge", "polars"])
def test_filters_find_rows_in_files_of_views(tmp_path: Path, how: str) -> None:
    path = tmp_path / "t"
    rows = pa.table({"id": [1, 2, 3, 4], "p": ["a", "b", None, "q"], "b": [b"x", b"y", b"z", b"v"]})
    deltalake.write_deltalake(path, rows)
    _change(path, how)
    table = DeltaTable(path)
    kinds = {str(kind) for uri in table.file_uris() for kind in pq.read_schema(uri).types}
    assert {"string_view", "binary_view"} <= kinds
    whole = table.to_pyarrow_table()
    for name, value in (("p", "a"), ("b", b"x")):
        literal = "'a'" if name == "p" else "X'78'"
        for operator, sql in (("=", "="), ("<", "<"), (">=", ">="), ("!=", "<>")):
            tuples = [(name, operator, value)]
            expression = {"=": pc.equal, "<": pc.less, ">=": pc.greater_equal, "!=": pc.not_equal}[operator](
                pc.field(name), value
            )
            expected = sorted(whole.filter(expression)["id"].to_pylist())
            for filters in (tuples, expression, f"{name} {sql} {literal}"):
                assert sorted(table.to_pyarrow_table(filters=filters)["id"].to_pylist()) == expected
                assert sorted(table.scan(["id"], filters).read_all()["id"].to_pylist()) == expected
            assert sorted(table.to_pyarrow_dataset().to_table(filter=expression)["id"].to_pylist()) == expected
        expected = sorted(whole.filter(pc.field(name) == value)["id"].to_pylist())
        assert sorted(table.to_pyarrow_table(filters=[(name, "in", [value])])["id"].to_pylist()) == expected
        dataset = table.to_pyarrow_dataset()
        found = duckdb.sql(f"select id from dataset where {name} = ?", params=[value])
        assert sorted(row[0] for row in found.fetchall()) == expected
        lazy = polars.scan_pyarrow_dataset(dataset).filter(polars.col(name) == value).collect()
        assert sorted(lazy["id"].to_list()) == expected
    assert pc.sum(
        table.to_pyarrow_dataset().scanner(filter=pc.field("p") > "a", columns=["id"]).to_table()["id"]
    ).as_py()
    write_deltalake(path, pa.table({"id": [9], "p": ["b"], "b": [b"n"]}), mode="overwrite", predicate="p = 'b'")
    assert DeltaTable(path).to_pyarrow_table(filters="p = 'b'")["id"].to_pylist() == [9]


def _by_hand(path: Path, rows: pa.Table, kind: str, **options: Any) -> DeltaTable:
    schema = (
        '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}},'
        f'{{"name":"x","type":"{kind}","nullable":true,"metadata":{{}}}}]}}'
    )
    path.mkdir()
    pq.write_table(rows, path / "a.parquet", **options)
    protocol = PROTOCOL
    if kind == "timestamp_ntz":
        features = {"readerFeatures": ["timestampNtz"], "writerFeatures": ["timestampNtz"]}
        protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    size = (path / "a.parquet").stat().st_size
    commit(path, 0, [protocol, metadata(schemaString=schema), add("a.parquet", size=size)])
    return DeltaTable(path)


TIMES = [dt.datetime(2024, 1, day, 5) for day in (1, 2, 3)]
KINDS: dict[str, tuple[list[Any], str, list[pa.DataType]]] = {
    "text": (
        ["a", "b", "c"],
        "string",
        [
            pa.large_string(),
            pa.string_view(),
            pa.dictionary(pa.int32(), pa.string()),
            pa.dictionary(pa.int8(), pa.large_string()),
        ],
    ),
    "bytes": ([b"a", b"b", b"c"], "binary", [pa.large_binary(), pa.binary_view(), pa.binary(1)]),
    "times": (
        [time.replace(tzinfo=UTC) for time in TIMES],
        "timestamp",
        [pa.timestamp(unit, zone) for unit in ("ns", "us", "ms") for zone in ("UTC", "America/New_York", "+02:00")],
    ),
    "clocks": (TIMES, "timestamp_ntz", [pa.timestamp("ns"), pa.timestamp("ms"), pa.timestamp("us")]),
    "days": ([time.date() for time in TIMES], "date", [pa.date64(), pa.date32()]),
    "integers": ([1, 2, 3], "long", [pa.int32(), pa.uint32(), pa.uint64(), pa.int8()]),
    "decimals": ([decimal.Decimal(n) for n in ("1.50", "2.50", "3.50")], "decimal(10,2)", [pa.decimal128(5, 2)]),
    "floats": ([1.5, 2.5, 3.5], "double", [pa.float32()]),
}


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, (_, _, kinds) in KINDS.items() for kind in kinds], ids=str
)
@pytest.mark.parametrize("groups", [1, 3])
def test_filters_find_rows_whatever_arrow_type_a_file_asks_for(
    tmp_path: Path, name: str, kind: pa.DataType, groups: int
) -> None:
    values, column, _ = KINDS[name]
    array = pa.array(values, kind.value_type).cast(kind) if pa.types.is_dictionary(kind) else pa.array(values, kind)
    table = _by_hand(tmp_path / "t", pa.table({"id": [1, 2, 3], "x": array}), column, row_group_size=groups)
    wanted = table.schema().to_arrow().field("x").type
    value = pa.scalar(values[1], wanted)
    for expression, expected in (
        (pc.field("x") == value, [2]),
        (pc.field("x") > value, [3]),
        (pc.field("x").isin([value]), [2]),
        (pc.field("x") != value, [1, 3]),
    ):
        assert table.to_pyarrow_table(filters=expression)["id"].to_pylist() == expected
        assert table.to_pyarrow_dataset().to_table(filter=expression)["id"].to_pylist() == expected
        assert table.scan(["id"], expression).read_all()["id"].to_pylist() == expected
    assert table.to_pyarrow_table(filters=[("x", "<=", values[1])])["id"].to_pylist() == [1, 2]
    assert table.to_pyarrow_table()["x"].to_pylist() == pa.array(values, wanted).to_pylist()


def test_files_elsewhere_are_filtered_as_well(tmp_path: Path) -> None:
    path = tmp_path / "t"
    deltalake.write_deltalake(path, pa.table({"id": [1, 2, 3], "p": ["a", "b", "c"]}))
    deltalake.DeltaTable(path).delete("id = 3")
    table = DeltaTable(path)
    root = pa_fs.SubTreeFileSystem(str(path), pa_fs.LocalFileSystem())
    for filters in (pc.field("p") == "b", "p = 'b'", [("p", "=", "b")]):
        assert table.to_pyarrow_table(filters=filters, filesystem=root)["id"].to_pylist() == [2]
    assert table.to_pyarrow_dataset(filesystem=root).to_table(filter=pc.field("p") == "b")["id"].to_pylist() == [2]


def test_a_long_footer_is_changed_as_well(tmp_path: Path) -> None:
    columns = {
        f"a column with a long name {number:04}": pa.array(["a", "b"], pa.string_view()) for number in range(400)
    }
    deltalake.write_deltalake(tmp_path / "t", pa.table({"p": ["x", "y"], **columns}))
    deltalake.DeltaTable(tmp_path / "t").update(updates={"p": "'y'"}, predicate="p = 'x'")
    table = DeltaTable(tmp_path / "t")
    root = pa_fs.SubTreeFileSystem(str(tmp_path / "t"), pa_fs.LocalFileSystem())
    assert (
        table.to_pyarrow_table(filters=pc.field("a column with a long name 0399") == "b", columns=["p"]).num_rows == 1
    )
    assert table.to_pyarrow_table(filters=pc.field("p") >= "x", filesystem=root, columns=["p"]).num_rows == 2
