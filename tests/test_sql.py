"""`LanceDataset.sql`: what it returns beside pylance's, what it reads, and what it refuses.

And what it is made of, fragments and their scanners, which other engines use too."""

from __future__ import annotations

import builtins
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import esker
from esker.cli import main
from esker.exceptions import InvalidArgumentError, SchemaMismatchError, UnsupportedError
from esker.lance.scan.scan import Scan

ROWS = 1000


def rows_of_many_types() -> pa.Table:
    start = datetime(2024, 1, 1)
    return pa.table(
        {
            "id": pa.array(range(ROWS)),
            "s": pa.array([None if i % 7 == 0 else f"s{i}" for i in range(ROWS)]),
            "ls": pa.array([f"L{i % 10}" for i in range(ROWS)], pa.large_string()),
            "d": pa.array([f"d{i % 3}" for i in range(ROWS)]).dictionary_encode(),
            "m": pa.array([Decimal(i) / 4 for i in range(ROWS)], pa.decimal128(12, 2)),
            "ts": pa.array(
                [start.replace(tzinfo=UTC) + timedelta(hours=i) for i in range(ROWS)],
                pa.timestamp("us", "Europe/Berlin"),
            ),
            "tn": pa.array([start + timedelta(hours=i) for i in range(ROWS)], pa.timestamp("ns")),
            "dt": pa.array([date(2024, 1, 1 + i % 28) for i in range(ROWS)]),
            "f": pa.array([float("nan") if i % 11 == 0 else i / 3 for i in range(ROWS)]),
            "b": pa.array([i % 2 == 0 for i in range(ROWS)]),
            "st": pa.array([{"x": i, "y": f"y{i}"} for i in range(ROWS)]),
            "l": pa.array([[i, i + 1] for i in range(ROWS)]),
            "bin": pa.array([bytes([i % 256]) for i in range(ROWS)]),
        }
    )


TOKENS = ["a b", "A b", "ab", "a,b", "", None, "don't stop", "ünï côde", "x_y z", "1.5 2", "日本 語", "का ख", "Ⓐb", "²"]
ASKED = ["a", "A", "b a", "", "---", "don't", "t", "ü", "ünï", "x", "1", "日本", "日", "का", "क", "Ⓐb", "²", "aa"]


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("tokens") / "t.lance")
    columns = {"s": TOKENS, "l": pa.array(TOKENS, pa.large_string()), "q": ["a", "a", "b", "z", *[None] * 10]}
    esker.write_dataset(pa.table(columns), uri)
    return uri


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("sql") / "t.lance")
    dataset = esker.write_dataset(rows_of_many_types(), uri, max_rows_per_file=300)
    dataset.delete("id = 500")
    return uri


def rows(dataset: Any, query: str) -> pa.Table:
    return dataset.sql(query).build().to_stream_reader().read_all()


QUERIES = [
    "SELECT * FROM dataset WHERE id < 5",
    "SELECT id, s FROM dataset WHERE s IS NULL LIMIT 3",
    "SELECT id FROM dataset LIMIT 4",
    "SELECT id FROM dataset LIMIT 4 OFFSET 310",
    "SELECT count(*) FROM dataset",
    "SELECT count(s), count(DISTINCT ls), min(ts), max(tn), sum(m), avg(f) FROM dataset WHERE id < 11",
    "SELECT d, count(*) c FROM dataset GROUP BY d ORDER BY d",
    "SELECT ls, sum(id) FROM dataset GROUP BY ls ORDER BY ls",
    "SELECT id, f FROM dataset WHERE f > 300 ORDER BY id LIMIT 5",
    "SELECT id FROM dataset WHERE f = f LIMIT 3",
    "SELECT id FROM dataset WHERE s LIKE '%99'",
    "SELECT id FROM dataset WHERE d = 'd1' LIMIT 3",
    "SELECT id FROM dataset WHERE d IN ('d1', 'd2') AND b LIMIT 3",
    "SELECT id FROM dataset WHERE ls = 'L3' LIMIT 3",
    "SELECT id FROM dataset WHERE m >= 12.25 AND m < 13",
    "SELECT id FROM dataset WHERE ts > TIMESTAMP '2024-01-02T00:00:00Z' LIMIT 2",
    "SELECT id FROM dataset WHERE ts > '2024-01-03' LIMIT 2",
    "SELECT id FROM dataset WHERE tn = TIMESTAMP '2024-01-02 00:00:00'",
    "SELECT id FROM dataset WHERE dt = DATE '2024-01-05' LIMIT 2",
    "SELECT st.x, st.y FROM dataset WHERE st.x > 990",
    "SELECT id, l[1] FROM dataset LIMIT 2",
    "SELECT id, bin FROM dataset WHERE bin = X'05' LIMIT 2",
    "SELECT a.id FROM dataset a JOIN dataset b ON a.id = b.id + 1 ORDER BY a.id LIMIT 3",
    "SELECT id FROM dataset WHERE id IN (SELECT max(id) FROM dataset)",
    "SELECT id FROM dataset WHERE id > (SELECT avg(id) FROM dataset) ORDER BY id LIMIT 2",
    "WITH x AS (SELECT id, row_number() OVER (PARTITION BY d ORDER BY id DESC) r FROM dataset) "
    "SELECT * FROM x WHERE r = 1 ORDER BY id",
    "SELECT id FROM dataset UNION ALL SELECT id + 10000 FROM dataset ORDER BY id DESC LIMIT 2",
    "SELECT upper(s) u, length(ls), id % 3, CAST(id AS VARCHAR) v FROM dataset WHERE NOT b LIMIT 2",
    "SELECT id FROM dataset WHERE id BETWEEN 5 AND 7 OR s = 's20'",
    "SELECT 1",
    "SELECT DISTINCT b FROM dataset ORDER BY b",
    "SELECT CASE WHEN b THEN 'even' ELSE 'odd' END c, count(*) FROM dataset GROUP BY c ORDER BY c",
    "SELECT * FROM dataset WHERE false",
    "SELECT id FROM dataset WHERE id > 498 LIMIT 3",
    "DESCRIBE dataset",
    'SELECT "id" FROM "dataset" ORDER BY ID LIMIT 1',
]


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_returns_what_pylance_returns(table: str, query: str) -> None:
    ours, theirs = rows(esker.dataset(table), query), rows(lance.dataset(table), query)
    assert ours.schema == theirs.schema
    assert repr(ours.to_pylist()) == repr(theirs.to_pylist())  # As text, since NaN equals nothing.


def test_the_builder_has_pylances_options(table: str) -> None:
    for library in (esker, lance):
        query = library.dataset(table).sql("SELECT _rowid, _rowaddr, id FROM t WHERE id IN (3, 301) ORDER BY id")
        (batch,) = query.table_name("t").with_row_id().with_row_addr().build().to_batch_records()
        assert batch.to_pydict() == {"_rowid": [3, 2**32 + 1], "_rowaddr": [3, 2**32 + 1], "id": [3, 301]}
        sizes = [
            b.num_rows
            for b in library.dataset(table).sql("SELECT id FROM dataset").batch_size(100).build().to_batch_records()
        ]
        assert max(sizes) <= 100
        assert sum(sizes) == ROWS - 1
    star = esker.dataset(table).sql("SELECT * FROM dataset LIMIT 1").with_row_id().build().to_stream_reader()
    assert star.schema.names[-1] == "_rowid"


def test_row_ids_can_be_filtered_by(table: str) -> None:
    query = "SELECT id FROM dataset WHERE _rowid >= 4294967296 ORDER BY id LIMIT 1"
    ours, theirs = (
        library.dataset(table).sql(query).with_row_id().build().to_stream_reader().read_all()
        for library in (esker, lance)
    )
    assert ours.to_pydict() == {"id": [300]}
    assert ours["id"].to_pylist() == theirs["id"].to_pylist()  # pylance returns `_rowid`, too.


def test_a_table_name_needs_no_quotes_to_hold_anything(table: str) -> None:
    query = esker.dataset(table).sql('SELECT count(*) AS n FROM "my ""table"').table_name('my "table')
    assert query.build().to_batch_records()[0].to_pylist() == [{"n": ROWS - 1}]


def test_batch_size_bytes_bounds_batches(table: str) -> None:
    query = esker.dataset(table).sql("SELECT s, ls FROM dataset").batch_size_bytes(1000).build()
    assert max(batch.nbytes for batch in query.to_batch_records()) < 4000


def test_blobs_are_descriptions_or_bytes(tmp_path: Path) -> None:
    field = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    data = pa.table([pa.array([b"one", None, b"three"], pa.large_binary())], schema=pa.schema([field]))
    uri = str(tmp_path / "t")
    esker.write_dataset(data, uri, data_storage_version="2.1")
    for library in (esker, lance):
        query = library.dataset(uri).sql("SELECT blob FROM dataset")
        described = query.build().to_stream_reader().read_all()
        assert pa.types.is_struct(described.schema.field("blob").type)
        query = library.dataset(uri).sql("SELECT blob FROM dataset").blob_handling("all_binary")
        assert query.build().to_stream_reader().read_all()["blob"].to_pylist() == [b"one", None, b"three"]
    with pytest.raises(InvalidArgumentError, match="blob_handling"):
        esker.dataset(uri).sql("SELECT 1").blob_handling("none")


@pytest.fixture
def wide(tmp_path: Path) -> esker.LanceDataset:
    columns = {f"c{i}": pa.array(range(i, 200_000 + i)) for i in range(10)}
    return esker.write_dataset(pa.table(columns), tmp_path / "wide", data_storage_version="2.0")


def bytes_read(dataset: esker.LanceDataset, query: str) -> int:
    dataset = esker.dataset(dataset.uri)
    built = dataset.sql(query).build()
    dataset.io_stats()
    built.to_batch_records()
    return dataset.io_stats().read_bytes


def test_only_the_columns_of_a_query_are_read(wide: esker.LanceDataset) -> None:
    whole = bytes_read(wide, "SELECT * FROM dataset")
    assert bytes_read(wide, "SELECT c3 FROM dataset") < whole / 5
    assert bytes_read(wide, "SELECT count(*) FROM dataset") < whole / 100


def test_filter_and_limit_reach_the_scan(wide: esker.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    from esker.dataset import sql_source

    seen: list[Any] = []

    class Watched(Scan):
        def to_batches(self) -> Any:
            seen.append((self.options.columns, str(self.predicate), self.options.limit))
            for batch in super().to_batches():
                seen.append(batch.num_rows)
                yield batch

    monkeypatch.setattr(sql_source, "Scan", Watched)
    result = rows(wide, "SELECT c1 + 1 AS n FROM dataset WHERE c0 >= 1000 AND c2 <> 5 LIMIT 7 OFFSET 2")
    assert result["n"].to_pylist() == list(range(1004, 1011))
    (columns, predicate, limit), scanned = seen
    assert columns == ["c1"]
    assert "c0" in predicate
    assert (limit, scanned) == (9, 9)


def test_a_limit_does_not_cut_what_other_parts_of_a_query_read(wide: esker.LanceDataset) -> None:
    for query, expected in {
        "SELECT count(*) FROM (SELECT c0 FROM dataset LIMIT 10)": 10,
        "SELECT count(*) FROM (SELECT c0 FROM dataset LIMIT 10) a CROSS JOIN (SELECT max(c0) m FROM dataset) b": 10,
        "SELECT c0 FROM dataset WHERE c0 = (SELECT max(c0) FROM dataset) LIMIT 1": 199_999,
        "SELECT max(c0) FROM dataset LIMIT 1": 199_999,
        "SELECT c0 FROM dataset ORDER BY c0 DESC LIMIT 1": 199_999,
        "SELECT c0 FROM dataset WHERE c0 % 100000 = 99999 LIMIT 1": 99_999,
    }.items():
        assert rows(wide, query).column(0).to_pylist() == [expected], query


def test_a_result_streams(wide: esker.LanceDataset) -> None:
    dataset = esker.dataset(wide.uri)
    before = pa.total_allocated_bytes()
    reader = dataset.sql("SELECT * FROM dataset WHERE c0 >= 0").batch_size(1000).build().to_stream_reader()
    first = reader.read_next_batch()
    assert first.num_rows <= 1000
    assert pa.total_allocated_bytes() - before < 200_000 * 10 * 8
    assert first["c0"][0].as_py() == 0  # In the table's order.


def test_a_query_shows_the_version_that_it_was_made_of(tmp_path: Path) -> None:
    dataset = esker.write_dataset(pa.table({"id": [1, 2]}), tmp_path / "t")
    query = dataset.sql("SELECT count(*) AS n FROM dataset").build()
    dataset.delete("id = 1")
    assert query.to_batch_records()[0].to_pylist() == [{"n": 2}]
    assert dataset.sql("SELECT count(*) AS n FROM dataset").build().to_batch_records()[0].to_pylist() == [{"n": 1}]


def test_branches_and_tags_are_queried(tmp_path: Path) -> None:
    dataset = esker.write_dataset(pa.table({"id": [1, 2]}), tmp_path / "t")
    branch = dataset.create_branch("feature")
    esker.write_dataset(pa.table({"id": [3]}), branch.uri, mode="append")
    branch.checkout_latest()
    assert rows(branch, "SELECT max(id) AS m FROM dataset").to_pylist() == [{"m": 3}]
    assert rows(dataset, "SELECT max(id) AS m FROM dataset").to_pylist() == [{"m": 2}]


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELEC", "Expected: an SQL statement"),
        ("SELECT nope FROM dataset", "No field named nope"),
        ("SELECT * FROM nope", "nope' not found"),
        ("SELECT 1; SELECT 2", "single SQL statement"),
        ("DROP TABLE dataset", "DDL not supported"),
        ("CREATE TABLE x AS SELECT 1", "DDL not supported"),
        ("CREATE EXTERNAL TABLE q STORED AS CSV LOCATION '/etc/passwd'", "DDL not supported"),
        ("INSERT INTO dataset SELECT * FROM dataset", "DML not supported"),
        ("COPY dataset TO '/tmp/never.csv'", "DML not supported"),
        ("SET datafusion.execution.batch_size = 1", "Statement not supported"),
    ],
)
def test_what_is_no_query_is_refused(table: str, query: str, told: str) -> None:
    with pytest.raises(InvalidArgumentError, match=told):
        esker.dataset(table).sql(query).build().to_batch_records()


def test_a_value_that_fails_says_why(table: str) -> None:
    for query, told in {
        "SELECT id / 0 FROM dataset": "Divide by zero",
        "SELECT CAST(ls AS INT) FROM dataset": "L0",
    }.items():
        with pytest.raises(InvalidArgumentError, match=told):
            rows(esker.dataset(table), query)


def test_an_error_of_the_scan_comes_out_as_it_is(tmp_path: Path) -> None:
    dataset = esker.write_dataset(pa.table({"id": [1, 2]}), tmp_path / "t")
    for file in (tmp_path / "t" / "data").iterdir():
        file.unlink()
    with pytest.raises(esker.exceptions.NotFoundError):
        rows(esker.dataset(dataset.uri), "SELECT id FROM dataset")


def test_without_datafusion_the_error_says_what_to_install(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *arguments: Any, **options: Any) -> Any:
        if name.partition(".")[0] == "datafusion":
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", absent)
    query = esker.dataset(table).sql("SELECT 1").build()
    with pytest.raises(UnsupportedError, match=r"pip install 'esker\[sql\]'"):
        query.to_batch_records()


def test_plans_are_explained(table: str) -> None:
    plan = rows(esker.dataset(table), "EXPLAIN SELECT id FROM dataset WHERE id > 3 LIMIT 2")
    assert plan.schema.names == ["plan_type", "plan"]
    assert "full_filters=[dataset.id > Int64(3)], fetch=2" in plan["plan"][0].as_py()
    analyzed = rows(esker.dataset(table), "EXPLAIN ANALYZE SELECT id FROM dataset WHERE id > 3")
    assert "filter_expr=(id > 3), projection=[id]" in analyzed["plan"][0].as_py()


# Engines that scan pyarrow datasets by themselves.


def test_datafusion_scans_a_dataset_that_is_registered_with_it(table: str) -> None:
    datafusion = pytest.importorskip("datafusion")
    context = datafusion.SessionContext()
    context.register_dataset("t", esker.dataset(table))
    found = context.sql("SELECT id, st FROM t WHERE id > 496 AND d = 'd1' ORDER BY id LIMIT 2").to_pylist()
    assert found == [{"id": 499, "st": {"x": 499, "y": "y499"}}, {"id": 502, "st": {"x": 502, "y": "y502"}}]
    assert context.sql("SELECT count(*) AS n FROM t").to_pylist() == [{"n": ROWS - 1}]


def test_fragments_of_a_filter_answer_as_pyarrows(table: str) -> None:
    dataset = esker.dataset(table)
    fragments = dataset.get_fragments(pc.field("id") > 3)
    assert [fragment.fragment_id for fragment in fragments] == dataset.fragment_ids()
    with pytest.raises(InvalidArgumentError, match="nope"):
        dataset.get_fragments(pc.field("nope") > 3)


def test_a_fragments_scanner_takes_a_schema_as_pyarrows_does(table: str) -> None:
    dataset = esker.dataset(table)
    fragment = dataset.get_fragments()[0]
    part = pa.schema([dataset.schema.field("s"), dataset.schema.field("id")])
    assert fragment.scanner(part).to_table().schema.names == ["s", "id"]
    scanner = fragment.scanner(schema=dataset.schema, columns=["id"], filter=pc.field("s") == "s2", use_threads=True)
    assert scanner.to_table().to_pydict() == {"id": [2]}
    assert sum(b.num_rows for b in fragment.scanner(dataset.schema, columns=[]).to_batches()) == 300
    with pytest.raises(SchemaMismatchError, match="nope"):
        fragment.scanner(pa.schema([("nope", pa.int64())]))
    with pytest.raises(SchemaMismatchError, match="string"):
        fragment.scanner(pa.schema([("id", pa.string())]))


def test_the_command_prints_the_result(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", table, "SELECT d, count(*) AS n FROM dataset GROUP BY d ORDER BY d", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"d": "d0", "n": 334}, {"d": "d1", "n": 333}, {"d": "d2", "n": 332}]
    assert main(["sql", table, "SELECT id FROM dataset ORDER BY id LIMIT 2"]) == 0
    assert "2 rows" in capsys.readouterr().out
    assert main(["sql", table, "SELECT count(*) AS n FROM dataset", "--at", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"n": ROWS}]
    assert main(["sql", table, "SELEC"]) == 1
    assert "error: query 'SELEC'" in capsys.readouterr().err


def test_the_command_prints_all_columns_of_one_name(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT x.id, y.id FROM dataset x JOIN dataset y ON x.id + 1 = y.id WHERE x.id = 4"
    assert main(["sql", table, query, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"id": 4, "id_1": 5}]
    assert main(["sql", table, query]) == 0
    assert "id_1" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["s", "l", "CAST(NULL AS STRING)", "'a b'", "concat(s, ' b')"])
def test_words_are_found_as_pylance_finds_them(text: str, tokens: str) -> None:
    asked = ["NULL", "arrow_cast('a', 'LargeUtf8')", *("'" + it.replace("'", "''") + "'" for it in ASKED)]
    query = f"SELECT {', '.join(f'contains_tokens({text}, {it}) AS c{n}' for n, it in enumerate(asked))} FROM dataset"
    ours, theirs = rows(esker.dataset(tokens), query), rows(lance.dataset(tokens), query)
    assert ours.to_pydict() == theirs.to_pydict()
    assert ours.schema.types == theirs.schema.types


def test_constants_that_are_computed_are_returned(tokens: str) -> None:
    query = "SELECT lower('A') AS c, 1 AS n, s FROM dataset"
    assert rows(esker.dataset(tokens), query).to_pydict() == rows(lance.dataset(tokens), query).to_pydict()


def test_words_are_filtered_by_and_may_differ_by_row(tokens: str) -> None:
    dataset = esker.dataset(tokens)
    query = "SELECT s FROM dataset WHERE contains_tokens(s, 'b a')"
    for module in (esker, lance):
        assert rows(module.dataset(tokens), query)["s"].to_pylist() == ["a b", "a,b"]
    found = rows(dataset, "SELECT contains_tokens(s, q) AS c FROM dataset")["c"].to_pylist()
    assert found == [True, False, False, False, True, None, *[True] * 8]
    assert rows(dataset, "SELECT contains_tokens(s, q) AS c FROM dataset WHERE s = 'nothing'").num_rows == 0


def test_what_a_function_of_json_raises_comes_out_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}', '{"a": [1]}']))
    dataset = esker.write_dataset(pa.table({"e": texts}), str(tmp_path / "t"))
    for text in ("SELECT json_get_int(e, 'a') FROM dataset", "SELECT 1 FROM dataset WHERE json_get_int(e, 'a') > 0"):
        with pytest.raises(InvalidArgumentError, match=r'InvalidCast of \[1\].* in expression "json_get_int') as failed:
            dataset.sql(text).build().to_batch_records()
        assert "Traceback" not in str(failed.value)
        assert "DataFusion" not in str(failed.value)
        assert main(["sql", dataset.uri, text]) == 1
        assert capsys.readouterr().err.count("\n") == 1
