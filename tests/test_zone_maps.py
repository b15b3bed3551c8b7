"""Zone maps: bounds of runs of rows in data files, as pylance's seeds, which rule out what a filter cannot keep."""

from __future__ import annotations

import io
import math
import random
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance.file import LanceFileReader, LanceFileWriter
from lance.indices import IndexConfig

import esker
from esker.file import LanceFileReader as OurFileReader

ZONE = 8192
ROWS = 12 * ZONE + 77
VERSIONS = ["2.0", "2.1", "2.2"]


def numbered(rows: int = ROWS, *, start: int = 0) -> pa.Table:
    """Sorted and clustered columns, and two that are neither."""
    numbers = np.arange(start, start + rows)
    mixed = np.random.RandomState(start).permutation(rows)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "half": pa.array(numbers / 2, pa.float64(), mask=numbers % 10 == 3),
            "day": pa.array((numbers // 5000).astype(np.int32), pa.date32()),
            "at": pa.array(numbers * 1_000_000, pa.timestamp("us", "UTC")),
            "text": pa.array([None if n % 1000 == 999 else f"{n:09}" for n in numbers.tolist()]),
            "near": pa.array(numbers + mixed % 100, pa.int32()),
            "price": pa.array(numbers, pa.int64()).cast(pa.decimal128(20, 0)),
            "mixed": pa.array(mixed, pa.int64()),
            "noise": pa.array(np.random.RandomState(start + 1).random_sample(rows)),
        }
    )


def seeds(uri: str | Path) -> list[dict[str, int]]:
    """The columns with a seed in each data file, and the bytes of each."""
    found = []
    for file in sorted(Path(uri, "data").glob("*.lance")):
        meta = LanceFileReader(str(file)).metadata()
        keys = {key.decode(): value.decode() for key, value in (meta.schema.metadata or {}).items()}
        sizes = [buffer.size for buffer in meta.global_buffers]
        found.append(
            {key.removeprefix("lance.seed."): sizes[int(v.split(":")[0])] for key, v in keys.items() if "seed" in key}
        )
    return found


def alike(one: pa.Table, other: pa.Table) -> bool:
    """Whether two tables have the same rows; NaN is NaN."""
    return one.equals(other) or str(one.to_pydict()) == str(other.to_pydict())


def scanned(dataset: esker.LanceDataset, condition: Any, **options: Any) -> tuple[pa.Table, Any]:
    """What a filter keeps, checked against a scan that reads past the statistics, and what it cost."""
    costs: list[Any] = []
    found = dataset.scanner(filter=condition, scan_stats_callback=costs.append, **options).to_table()
    everything = dataset.scanner(filter=condition, use_stats=False, **options).to_table()
    assert alike(found, everything), condition
    return found, costs[0]


@pytest.mark.parametrize("version", VERSIONS)
def test_sorted_and_clustered_columns_have_zone_maps_and_others_do_not(version: str, uri: str) -> None:
    esker.write_dataset(numbered(), uri, data_storage_version=version)
    (found,) = seeds(uri)
    assert set(found) == {"id", "half", "day", "at", "text", "near", "price"}
    assert all(1000 < size < 2600 for size in found.values())
    assert lance.dataset(uri).to_table().equals(numbered())
    esker.write_dataset(numbered(7 * ZONE), uri, mode="overwrite", data_storage_version=version)
    assert sum(map(bool, seeds(uri))) == 1, "the smaller file is read as fast without"


CONDITIONS = {
    "id = 50000": 12,
    "id >= 98000 OR id = 5": 10,
    "id BETWEEN 20000 AND 30000": 10,
    "half = 20000.0": 12,
    "half > 1e9": 0,
    "half IS NULL": 0,
    "day = date '1970-01-03'": 11,
    "at < timestamp '1970-01-01 00:10:00+00:00'": 11,
    "text = '000050000'": 12,
    "text LIKE '00005%'": 10,
    "text IN ('000000001', '000098000')": 11,
    "near = 40000": 11,
    "price > 90000": 10,
    "mixed = 5": 0,
    "id > 90000 AND mixed >= 0": 10,
    "NOT (id < 90000)": 10,
    "id + 1 = 50000": 0,
    "id < 0": 13,
}


@pytest.fixture(scope="module", params=VERSIONS)
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> esker.LanceDataset:
    uri = str(tmp_path_factory.mktemp("zones") / request.param)
    # With general compression these columns are so small that all of them come with the first read.
    return esker.write_dataset(numbered(), uri, data_storage_version=request.param, compression="fast")


@pytest.mark.parametrize("condition", CONDITIONS)
def test_zones_that_are_ruled_out_are_not_read(condition: str, table: esker.LanceDataset) -> None:
    found, cost = scanned(table, condition)
    assert cost.groups == (0 if condition == "mixed = 5" else 13)
    assert cost.groups_skipped >= CONDITIONS[condition]
    theirs = lance.dataset(table.uri)
    assert found.num_rows == theirs.count_rows(condition) == table.count_rows(condition)
    assert found.equals(theirs.to_table(filter=condition))


def test_what_is_ruled_out_costs_no_bytes(table: esker.LanceDataset) -> None:
    scanned(table, "id = 50000")
    table.io_stats()
    table.to_table(columns=["noise"], filter="id = 50000")
    some = table.io_stats().read_bytes
    table.to_table(columns=["noise"], filter="id + 0 = 50000")
    assert some * 4 < table.io_stats().read_bytes


def test_the_plan_says_what_is_ruled_out(table: esker.LanceDataset) -> None:
    scanner = table.scanner(filter="id = 50000")
    assert "use_stats=True" in scanner.explain_plan()
    assert "groups_skipped=12/13" in scanner.explain_plan(verbose=True)
    assert "groups_skipped=12/13" in scanner.analyze_plan()
    past = table.scanner(filter="id = 50000", use_stats=False)
    assert "use_stats=False" in past.explain_plan(verbose=True)
    assert "groups_skipped" not in past.explain_plan(verbose=True) + past.analyze_plan()


def test_nan_is_found_wherever_it_is(uri: str) -> None:
    values = np.arange(ROWS, dtype=np.float64)
    values[5], values[40_000], values[2 * ZONE : 3 * ZONE] = math.nan, -math.nan, math.nan
    for kind in (pa.float64(), pa.float32()):
        data = pa.table({"f": pa.array(values).cast(kind), "n": np.arange(ROWS)})
        dataset = esker.write_dataset(data, uri, mode="overwrite")
        assert "f" in max(seeds(uri), key=len)
        for condition in ("f > 98000", "f < 10", "f = 50000", "f != f", "isnan(f)", "NOT (f < 50)", "f >= 1e300"):
            found, cost = scanned(dataset, condition)
            assert alike(found, lance.dataset(uri).to_table(filter=condition)), condition
            assert cost.groups == 13
        assert scanned(dataset, "f = 50000")[1].groups_skipped >= 9


def test_texts_that_were_cut_are_found(uri: str) -> None:
    head = "x" * 70
    texts = [f"{head}{n:06}" if n % 2 else f"{n:06}{head}" for n in range(ROWS)]
    data = pa.table({"long": sorted(texts), "bytes": [t.encode() + b"\xff" * 70 for t in sorted(texts)]})
    dataset = esker.write_dataset(data, uri)
    assert max(seeds(uri), key=len)
    for row in (0, ZONE - 1, ZONE, 5 * ZONE + 3, ROWS - 1):
        text = data["long"][row].as_py()
        for condition in (f"long = '{text}'", f"long >= '{text}' AND long <= '{text}a'", f"long > '{text}'"):
            found, _ = scanned(dataset, condition)
            assert found.num_rows == lance.dataset(uri).count_rows(condition) > 0 or row == ROWS - 1
        wanted = pc.field("bytes") == pa.scalar(data["bytes"][row].as_py(), pa.binary())
        assert scanned(dataset, wanted)[0].num_rows == 1


@pytest.mark.parametrize("stable", [False, True])
def test_deleted_and_updated_rows_are_as_without(stable: bool, uri: str) -> None:
    dataset = esker.write_dataset(numbered(), uri, enable_stable_row_ids=stable, max_rows_per_file=9 * ZONE)
    dataset.delete("id % 3 = 0 OR id BETWEEN 30000 AND 40000")
    dataset.update({"id": "id + 1000000"}, where="id BETWEEN 50000 AND 50100")
    for options in (
        {},
        {"with_row_id": True, "with_row_address": True},
        {"limit": 5},
        {"offset": 3, "limit": 4},
        {"batch_size": 100},
        {"include_deleted_rows": True, "with_row_id": True},
        {"columns": ["noise"]},
        {"order_by": ["mixed"]},
    ):
        for condition in ("id BETWEEN 29000 AND 50200", "id > 1000000", "id = 50000", "half < 100"):
            found, cost = scanned(dataset, condition, **options)
            assert cost.groups > 0
            if not options:
                assert found.num_rows == lance.dataset(uri).count_rows(condition)


def test_a_column_is_found_by_its_field_and_not_by_its_name(uri: str) -> None:
    dataset = esker.write_dataset(numbered().select(["id", "near", "text", "mixed"]), uri)
    dataset.alter_columns({"path": "id", "name": "old"})
    dataset.alter_columns({"path": "mixed", "name": "id"})
    assert scanned(dataset, "old = 50000")[1].groups_skipped == 12
    found, cost = scanned(dataset, "id = 50000")
    assert (found.num_rows, cost.groups) == (1, 0), "the seed called id is of another column"
    dataset.drop_columns(["near"])
    dataset.add_columns({"near": "98000 - old"})
    # The seed called near in the old file is of the column that was dropped; the new file has one of its own.
    assert scanned(dataset, "near = 50")[0].num_rows == 1
    dataset.alter_columns({"path": "old", "data_type": pa.int32()})
    assert scanned(dataset, "old = 50000")[0].num_rows == 1
    seven = {name: pa.array([7], dataset.schema.field(name).type) for name in ("old", "id", "near")}
    dataset.insert(pa.table({**seven, "text": ["x"]}).select(dataset.schema.names))
    assert scanned(dataset, "near = 7")[0].num_rows == 2
    assert lance.dataset(uri).count_rows("near = 7") == 2
    assert scanned(dataset, "text = 'x'")[0].num_rows == 1


def crafted(uri: str, payload: bytes, *, key: str = "lance.seed.k", place: str = "1:8192", rows: int = 3000) -> None:
    """A table of one file with a seed of our making, beside pylance."""
    data = pa.table({"k": pa.array(range(rows), pa.int64())})
    lance.write_dataset(data.slice(0, 0), uri)
    path = Path(uri, "data", "crafted.lance")
    path.parent.mkdir(exist_ok=True)
    with LanceFileWriter(str(path), schema=data.schema) as writer:
        writer.write_batch(data)
        writer.add_global_buffer(payload)
        writer.add_schema_metadata(key, place)
    minor = LanceFileReader(str(path)).metadata().minor_version
    file = lance.fragment.DataFile("crafted.lance", [0], [0], 2, minor)
    fragment = lance.FragmentMetadata(0, [file], rows)
    lance.LanceDataset.commit(uri, lance.LanceOperation.Append([fragment]), read_version=1)


def payload(rows: list[tuple[Any, Any, int, int, int]], kind: pa.DataType | None = None) -> bytes:
    kind = kind or pa.int64()
    columns = list(zip(*rows, strict=True))
    types = (kind, kind, pa.uint32(), pa.uint32(), pa.uint64())
    names = ("min", "max", "null_count", "nan_count", "zone_length")
    fields = [pa.field(n, t, nullable=n in ("min", "max")) for n, t in zip(names, types, strict=True)]
    batch = pa.record_batch([pa.array(c, t) for c, t in zip(columns, types, strict=True)], schema=pa.schema(fields))
    out = io.BytesIO()
    with pa.ipc.new_file(out, batch.schema) as writer:
        writer.write_batch(batch)
    return out.getvalue()


GOOD = [(0, 999, 0, 0, 1000), (1000, 1999, 0, 0, 1000), (2000, 2999, 0, 0, 1000)]


def test_seeds_of_other_writers_are_read(uri: str) -> None:
    crafted(uri, payload(GOOD))
    found, cost = scanned(esker.dataset(uri), "k = 1500")
    assert (found.num_rows, cost.groups, cost.groups_skipped) == (1, 3, 2)


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"ARROW1",
        payload(GOOD)[:-3],
        payload(GOOD, pa.int32()),
        payload(GOOD, pa.float64()),
        payload(GOOD[:2]),
        payload([*GOOD, (0, 1, 0, 0, 1)]),
        payload([(0, 999, 0, 0, 1000), (1999, 1000, 0, 0, 1000), (2000, 2999, 0, 0, 1000)]),
        payload([(0, 999, 1001, 0, 1000), *GOOD[1:]]),
        payload([(0, 999, 0, 0, 0), (0, 1999, 0, 0, 2000), GOOD[2]]),
    ],
    ids=range(10),
)
def test_a_seed_that_is_damaged_says_nothing(bad: bytes, uri: str) -> None:
    crafted(uri, bad)
    dataset = esker.dataset(uri)
    for condition in ("k = 1500", "k < 10", "k IS NULL"):
        found, cost = scanned(dataset, condition)
        assert (found.num_rows, cost.groups) == (lance.dataset(uri).count_rows(condition), 0)


@pytest.mark.parametrize("place", ["0:8192", "2:8192", "x", "1", "1:0", "-1:8192", "99999999999999999999:1", "1:", ":"])
def test_a_seed_that_is_nowhere_says_nothing(place: str, uri: str) -> None:
    crafted(uri, payload(GOOD), place=place)
    assert scanned(esker.dataset(uri), "k = 1500")[1].groups == 0


def test_random_damage_never_costs_a_row_or_a_process(tmp_path: Path) -> None:
    rng = random.Random(3)
    whole = payload(GOOD)
    for turn in range(60):
        bad = bytearray(whole)
        # Damage outside of the values: what a file says of itself is believed as long as it makes sense.
        for _ in range(rng.randrange(1, 5)):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        uri = str(tmp_path / str(turn))
        crafted(uri, bytes(bad))
        assert esker.dataset(uri).scanner(filter="k + 0 = 1500").to_table().num_rows == 1
        assert esker.dataset(uri).scanner(filter="k = 1500", use_stats=False).to_table().num_rows == 1
        assert esker.dataset(uri).scanner(filter="k = 1500").to_table().num_rows <= 1


def test_pylance_and_esker_take_each_others_seeds(uri: str) -> None:
    data = numbered().select(["id", "text", "half"])
    theirs = lance.write_dataset(data.slice(0, 10), uri)
    theirs.create_scalar_index("id", IndexConfig("zonemap", {"rows_per_zone": ZONE, "use_seeds": True}))
    theirs.create_scalar_index("text", IndexConfig("zonemap", {"rows_per_zone": ZONE}))
    lance.write_dataset(data, uri, mode="append")
    ours = esker.dataset(uri)
    assert max(seeds(uri), key=len).keys() == {"id", "text"}
    for condition in ("id = 50000", "text = '000050000'", "text IS NULL", "id > 98000"):
        found, cost = scanned(ours, condition)
        assert cost.groups == 13
        assert found.num_rows == lance.dataset(uri).count_rows(condition)
    assert scanned(ours, "id = 50000")[1].groups_skipped == 12
    esker.write_dataset(data, uri, mode="append")
    after = lance.dataset(uri)
    after.optimize.optimize_indices()
    for condition in ("id = 50000", "text = '000050000'", "text IS NULL", "id > 98000", "text > '000098000'"):
        assert "ScalarIndexQuery" in after.scanner(filter=condition).explain_plan()
        assert after.count_rows(condition) == after.scanner(filter=condition, use_scalar_index=False).count_rows()
        assert after.count_rows(condition) == esker.dataset(uri).count_rows(condition)


def test_seeds_lie_in_the_tail_of_the_file(uri: str) -> None:
    dataset = esker.write_dataset(numbered(), uri)
    opened = esker.dataset(uri)
    opened.count_rows("noise > 2")
    (file,) = Path(uri, "data").glob("*.lance")
    buffers = OurFileReader(str(file)).metadata().global_buffers
    size = file.stat().st_size
    assert all(size - buffer.position < 65_536 for buffer in buffers)
    dataset = esker.dataset(uri)
    dataset.io_stats()
    dataset.count_rows("id < 0")
    assert dataset.io_stats().read_iops == 1, "the file's end, which has them"


@pytest.mark.parametrize("seed", range(4))
def test_random_conditions_find_the_same_rows_as_without(seed: int, table: esker.LanceDataset) -> None:
    rng = random.Random(seed)

    def part() -> str:
        row = rng.randrange(-500, ROWS + 500)
        compare = rng.choice(["=", "!=", "<", "<=", ">", ">="])
        return rng.choice(
            [
                f"id {compare} {row}",
                f"half {compare} {row / 2}",
                f"text {compare} '{abs(row):09}'",
                f"text IS {rng.choice(['', 'NOT '])}NULL",
                f"half IS {rng.choice(['', 'NOT '])}NULL",
                f"near {rng.choice(['', 'NOT '])}IN ({row}, {row + 1})",
                f"text LIKE '{abs(row) // 100:07}%'",
                f"day {compare} date '1970-01-{rng.randrange(1, 21):02}'",
                f"price {compare} {row}",
                f"mixed {compare} {row}",
            ]
        )

    for _ in range(12):
        condition = f"({part()} {rng.choice(['AND', 'OR'])} {part()}) {rng.choice(['AND', 'OR'])} NOT ({part()})"
        scanned(table, condition, columns=["id", "text"])
