"""JSON columns: `arrow.json` for users, pylance's JSONB in files; their functions; both directions with pylance."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lance
import lance.file
import pyarrow as pa
import pytest

import esker
from esker.exceptions import EskerError, InvalidArgumentError, SchemaMismatchError, UnsupportedError
from esker.file import LanceFileReader, LanceFileWriter

VERSIONS = ["legacy", "2.0", "2.1", "2.2"]
DOCUMENTS = [
    '{"a":1,"b":"x","c":[1,2,"x",null,true,{"k":1}],"d":{"e":{"f":2.5}},"n":null,"t":true}',
    '{"a":"12","b":7,"c":"str","t":"true"}',
    None,
    "[1,2,3]",
    '"scalar"',
    "42",
    "null",
    '{"a":1.9,"b":true,"c":[],"d":5,"t":0,"a.b":3}',
    '{"a":true,"b":null,"c":{"x":1}}',
    '{"a":"abc","b":[1,"q"],"t":"false"}',
    '{"a":-5,"b":{"z":"é😀"},"t":"1"}',
    '{"a":18446744073709551615,"z":[0,-0.0,255,-129,65536,1e16,1e-7,1e400,123456789012345678901234567890]}',
    '{"":"\\u0000\\u001f\\ud800\\n\\"\\\\\\/\\u00e9\\b\\f"}',
    " [ ] ",
    "{ }",
]


def columns(documents: Sequence[str | None] = DOCUMENTS) -> pa.Table:
    texts = pa.array(documents, pa.string())
    return pa.table({"i": range(len(documents)), "j": pa.ExtensionArray.from_storage(pa.json_(), texts)})


def stored(folder: Path) -> list[Any]:
    """The bytes in the files of a table."""
    (file,) = (folder / "data").iterdir()
    return LanceFileReader(str(file)).read_all().to_table()["j"].to_pylist()


@pytest.fixture
def pair(tmp_path: Path) -> tuple[esker.LanceDataset, Any]:
    """The documents in a table, opened by both."""
    esker.write_dataset(columns(), tmp_path / "t")
    return esker.dataset(tmp_path / "t"), lance.dataset(tmp_path / "t")


@pytest.mark.parametrize("version", VERSIONS)
def test_both_directions_with_pylance_in_every_file_version(tmp_path: Path, version: str) -> None:
    documents = [text for text in DOCUMENTS if version != "legacy" or text is not None]
    ours = esker.write_dataset(columns(documents), tmp_path / "ours", data_storage_version=version)
    theirs = lance.write_dataset(columns(documents), tmp_path / "theirs", data_storage_version=version)
    assert ours.schema == theirs.schema
    assert ours.schema.field("j").type == pa.json_()
    expected = theirs.to_table()
    for library in (esker, lance):
        for name in ("ours", "theirs"):
            dataset = library.dataset(tmp_path / name)
            assert dataset.to_table() == expected
            assert dataset.take([4, 0]) == expected.take([4, 0])
            assert dataset.get_fragments()[0].to_table() == expected
            assert dataset.scanner(columns=["j"]).projected_schema == expected.schema.empty_table().select(["j"]).schema
    if version != "legacy":
        assert stored(tmp_path / "ours") == stored(tmp_path / "theirs")
        assert str(ours.lance_schema.fields()[1].logical_type()) == "json"


def test_large_strings_are_json_too(tmp_path: Path) -> None:
    texts = pa.ExtensionArray.from_storage(pa.json_(pa.large_string()), pa.array(["[1]"], pa.large_string()))
    dataset = esker.write_dataset(pa.table({"j": texts}), tmp_path / "t")
    assert dataset.to_table()["j"].to_pylist() == ["[1]"]
    assert dataset.schema == lance.dataset(tmp_path / "t").schema


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_json_within_structs_lists_and_maps(tmp_path: Path, version: str) -> None:
    texts = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":1}', None, "[ ]"]))
    offsets = pa.array([0, 2, None, 3], pa.int32())
    data = {
        "s": pa.StructArray.from_arrays([texts, pa.array([1, 2, 3])], ["x", "y"]),
        "l": pa.ListArray.from_arrays(offsets, texts),
    }
    if version == "2.2":
        data["m"] = pa.MapArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), pa.array(["k", "l", "m"]), texts)
    ours = esker.write_dataset(pa.table(data), tmp_path / "ours", data_storage_version=version)
    theirs = lance.write_dataset(pa.table(data), tmp_path / "theirs", data_storage_version=version)
    assert ours.schema == theirs.schema
    for library in (esker, lance):
        for name in ("ours", "theirs"):
            assert library.dataset(tmp_path / name).to_table().to_pylist() == theirs.to_table().to_pylist()


def test_a_fixed_size_list_of_json_is_refused_by_name(tmp_path: Path) -> None:
    texts = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["1", "2"]))
    with pytest.raises(UnsupportedError, match=r"column 'v': extension arrow\.json"):
        esker.write_dataset(pa.table({"v": pa.FixedSizeListArray.from_arrays(texts, 2)}), tmp_path / "t")
    assert not (tmp_path / "t").exists()


PATHS = [
    *("$", "", "$.a", "a", ".a", ":a", " $.a ", "$.c", "$.c[0]", "c[0]", "$.c[*]", "$.c[*].k", "$.d.e.f", "$.d.e"),
    *("$[1]", "$.zzz", "$.n", "$.c[-1]", "$.c[last]", "$.c[5]", "$.c[5].k", "$.c[0,2]", "$.*", "$.*.e", '$["a"]'),
    *('$."a.b"', "a.b", "$[*]", "$.C", "$..a", "$.", "$.a[", "@.a", "strict $.a"),
]
KEYS = ["a", "b", "c", "t", "n", "zzz", "d", "$.a", "0", "1", "-1", "a.b", ""]
EXPRESSIONS = [
    *(f"{name}(j, '{path}')" for path in PATHS for name in ("json_extract", "json_exists", "json_array_length")),
    *(f"json_get{kind}(j, '{key}')" for key in KEYS for kind in ("", "_string", "_int", "_float", "_bool")),
    *(
        f"json_array_contains(j, '{path}', '{value}')"
        for path in ("$.c", "$", "c", "$.zz", "$.b")
        for value in ("1", "x", '"x"', "true", "null", "1.0", '{"k":1}', '{"k": 1}', "q", "2", " 1", "TRUE")
    ),
    "json_get_float(json_get(json_get(j, 'd'), 'e'), 'f')",
    "JSON_EXTRACT(j, '$.a')",
    "json_extract(j, null)",
    "json_get_string(j, concat('', 'a'))",
    "j is null",
]


def test_an_array_that_holds_a_value_is_found_among_several_of_a_path(tmp_path: Path) -> None:
    texts = ['[["b"],["a"]]', '{"x":["b"],"y":["a"]}', '[[["a"]],["c"]]', "[]", '["a"]']
    rows = pa.table({"id": range(5), "j": pa.ExtensionArray.from_storage(pa.json_(), pa.array(texts))})
    datasets: list[Any] = [esker.write_dataset(rows, tmp_path / "ours"), lance.write_dataset(rows, tmp_path / "theirs")]
    for path in ("$", "$[*]", "$[0,1]", "$.*", "$[*][*]"):
        filter = f"json_array_contains(j, '{path}', 'a')"
        ours, theirs = (dataset.to_table(columns=["id"], filter=filter)["id"].to_pylist() for dataset in datasets)
        assert ours == theirs, path


def answer(dataset: Any, expression: str, row: int) -> Any:
    try:
        return dataset.take([row], columns={"x": expression})["x"].to_pylist()
    except (EskerError, ValueError, OSError):
        return "an error"


def test_functions_answer_row_by_row_as_pylances(pair: tuple[esker.LanceDataset, Any]) -> None:
    ours, theirs = pair
    differing = []
    for expression in EXPRESSIONS:
        found, expected = ([answer(dataset, expression, row) for row in range(12)] for dataset in (ours, theirs))
        if found != expected:
            differing.append((expression, found, expected))
    assert differing == []


@pytest.mark.parametrize(
    "filter",
    [
        "json_extract(j, '$.a') = '1'",
        "json_exists(j, '$.a')",
        "json_array_contains(j, '$.c', 'x')",
        "json_array_length(j, '$.c') > 1",
        "json_get_string(json_get(j, 'd'), 'g') IS NULL AND j IS NOT NULL AND i <> 7 AND i <> 0",
        "j IS NULL",
        "json_get_int(j, 'a') > 0 OR json_exists(j, '$.zzz')",
        "json_extract(j, '$..a') = '1'",
    ],
)
def test_filters_keep_the_rows_that_pylance_keeps(pair: tuple[esker.LanceDataset, Any], filter: str) -> None:
    answers: list[Any] = []
    for dataset in pair:
        try:
            answers.append(
                (dataset.to_table(columns=["i"], filter=filter)["i"].to_pylist(), dataset.count_rows(filter))
            )
        except (EskerError, ValueError, OSError):
            answers.append("an error")
    assert answers[0] == answers[1]


def test_errors_of_functions_say_what_was_found(pair: tuple[esker.LanceDataset, Any]) -> None:
    dataset, _ = pair
    for expression, told in {
        "json_get_int(j, 'a')": "Failed to convert to integer: InvalidCast of .*abc",
        "json_get_bool(j, 'a')": "Failed to convert to boolean",
        "json_get_string(j, 'c')": "Failed to convert to string",
        "json_extract(j, '$..a')": r"InvalidJsonPath",
        "json_extract(j, '$.c ? (@ == 1)')": "filters are not supported yet",
    }.items():
        with pytest.raises(InvalidArgumentError, match=told):
            dataset.to_table(columns={"x": expression})


@pytest.mark.parametrize("text", ["{", '{"a":1,}', "tru", '{"a":1,"a":2}', "1.5.", '"\\x41"', "1 2", "--1"])
def test_what_is_no_json_is_refused_with_its_row(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"column 'j', row 2: Failed to encode JSON"):
        esker.write_dataset(columns(["1", None, text]), tmp_path / "t")
    batches = columns(["1", "2"]).to_batches() + columns([text]).to_batches()
    with pytest.raises(InvalidArgumentError, match="row 2"):
        esker.write_dataset(pa.Table.from_batches(batches), tmp_path / "t")
    with pytest.raises(EskerError):
        esker.dataset(tmp_path / "t")


def test_nesting_is_bounded(tmp_path: Path) -> None:
    deep = "[" * 501 + "]" * 501
    dataset = esker.write_dataset(columns([deep]), tmp_path / "t")
    assert dataset.to_table()["j"].to_pylist() == [deep]
    assert lance.dataset(tmp_path / "t").to_table()["j"].to_pylist() == [deep]
    with pytest.raises(InvalidArgumentError, match="500 levels of nesting"):
        esker.write_dataset(columns(["[" * 100_000]), tmp_path / "deeper")


def test_damaged_bytes_are_an_error(tmp_path: Path) -> None:
    field = pa.field("j", pa.large_binary(), metadata={"ARROW:extension:name": "lance.json"})
    for damaged in (b"", b"x", b"\x80\x00\x00\x01", b"\x20\x00\x00\x00\x20\x00\x00\x09\x50", b"\xff" * 40):
        rows = pa.table([pa.array([damaged], pa.large_binary())], schema=pa.schema([field]))
        dataset = esker.write_dataset(rows, tmp_path / "t", mode="overwrite")
        with pytest.raises(InvalidArgumentError, match="JSONB"):
            dataset.to_table()
        with pytest.raises(InvalidArgumentError, match="JSONB"):
            dataset.to_table(columns={"x": "json_extract(j, '$')"})


def test_appends_take_json_alone(pair: tuple[esker.LanceDataset, Any]) -> None:
    dataset, _ = pair
    esker.write_dataset(columns(['{"z":1}']), dataset.uri, mode="append")
    lance.write_dataset(columns(['{"z":2}']), dataset.uri, mode="append")
    latest = esker.dataset(dataset.uri)
    assert latest.to_table(offset=len(DOCUMENTS))["j"].to_pylist() == ['{"z":1}', '{"z":2}']
    for other in (pa.array(["{}"]), pa.array([b"{}"], pa.large_binary())):
        with pytest.raises(SchemaMismatchError, match="should have type json but type was"):
            esker.write_dataset(pa.table({"i": [1], "j": other}), dataset.uri, mode="append")
    plain = esker.write_dataset(pa.table({"i": [1], "j": ["{}"]}), "memory://json-into-strings")
    with pytest.raises(SchemaMismatchError, match="but type was json"):
        esker.write_dataset(columns(["1"]), plain, mode="append")


def _json(texts: Sequence[str]) -> pa.Array:
    return pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(texts))


def _within(values: pa.Array, shape: str) -> pa.Table:
    """Rows with each value in a column of its own, or within another value."""
    if shape == "struct":
        values = pa.StructArray.from_arrays([values], fields=[pa.field("v", values.type)])
    elif shape == "list":
        values = pa.ListArray.from_arrays(pa.array(range(len(values) + 1), pa.int32()), values)
    elif shape == "map":
        names = pa.array(["x"] * len(values))
        values = pa.MapArray.from_arrays(pa.array(range(len(values) + 1), pa.int32()), names, values)
    return pa.table({"k": range(len(values)), "j": values, "z": [7] * len(values)})


def _appended(library: Any, rows: pa.Table, uri: str) -> None:
    library.write_dataset(rows, uri, mode="append")


def _upserted(library: Any, rows: pa.Table, uri: str) -> None:
    library.dataset(uri).merge_insert("k").when_matched_update_all().when_not_matched_insert_all().execute(rows)


def _updated_by_key(library: Any, rows: pa.Table, uri: str) -> None:
    library.dataset(uri).get_fragments()[0].update_columns(rows.select(["k", "j"]), "k", "k")


@pytest.mark.parametrize("change", [_appended, _upserted, _updated_by_key])
@pytest.mark.parametrize("shape", ["column", "struct", "list", "map"])
@pytest.mark.parametrize("is_json", [True, False], ids=["into json", "of json"])
def test_other_bytes_are_no_json_at_any_depth(tmp_path: Path, is_json: bool, shape: str, change: Any) -> None:
    json_rows = _within(_json(['{"a":1}', "[2]"]), shape)
    other_rows = _within(pa.array([b"hello", b"there"], pa.large_binary()), shape)
    table, rows = (json_rows, other_rows) if is_json else (other_rows, json_rows)
    uris = {library: str(tmp_path / library.__name__) for library in (esker, lance)}
    for library, uri in uris.items():
        library.write_dataset(table, uri, data_storage_version="2.2")
    # pylance has errors of several classes for these, and panics at some.
    with pytest.raises(BaseException, match="."):
        change(lance, rows, uris[lance])
    with pytest.raises(SchemaMismatchError, match="should have type .*JSON columns take"):
        change(esker, rows, uris[esker])
    assert esker.dataset(uris[esker]).version == 1
    assert esker.dataset(uris[esker]).to_table() == lance.dataset(uris[lance]).to_table()


def test_an_update_writes_no_other_bytes_into_json_within_a_struct(tmp_path: Path) -> None:
    rows = _within(_json(['{"a":1}']), "struct").append_column(
        "b", _within(pa.array([b"hello"], pa.large_binary()), "struct")["j"]
    )
    rows = rows.append_column("c", _within(_json(['{"a":2}']), "struct")["j"])
    dataset = esker.write_dataset(rows, str(tmp_path / "t"), data_storage_version="2.2")
    with pytest.raises(InvalidArgumentError, match="JSONB"):
        dataset.update({"j": "b"})
    assert dataset.update({"j": "c"}) == {"num_rows_updated": 1}
    assert lance.dataset(dataset.uri).to_table()["j"].to_pylist() == [{"v": '{"a":2}'}]


def test_changes_of_rows_keep_their_bytes(pair: tuple[esker.LanceDataset, Any]) -> None:
    ours, _ = pair
    before = ours.to_table()
    ours.update({"i": "i + 100"}, where="i < 3")
    ours.delete("i = 5")
    after = ours.to_table().sort_by("i")
    assert after.filter(pa.compute.field("i") == 100)["j"].to_pylist() == [before["j"][0].as_py()]
    assert after.num_rows == before.num_rows - 1
    assert lance.dataset(ours.uri).to_table().sort_by("i") == after


@pytest.mark.parametrize("library", [esker, lance])
def test_updates_set_json_from_text(tmp_path: Path, library: Any) -> None:
    dataset = library.write_dataset(columns(), tmp_path / "t")
    dataset.update({"j": "'{\"u\":1}'"}, where="i = 1")
    dataset.update({"j": "null"}, where="i = 3")
    found = library.dataset(tmp_path / "t").to_table(filter="i IN (1, 3)").sort_by("i")
    assert found["j"].to_pylist() == ['{"u":1}', None]


def test_updates_refuse_what_is_no_json(pair: tuple[esker.LanceDataset, Any]) -> None:
    dataset, _ = pair
    with pytest.raises(InvalidArgumentError, match="Failed to encode JSON"):
        dataset.update({"j": "'{'"}, where="i = 1")
    with pytest.raises(InvalidArgumentError, match="JSONB"):
        dataset.update({"j": "arrow_cast(X'00', 'LargeBinary')"}, where="i = 1")
    dataset.update({"j": "json_get(j, 'd')"}, where="i = 0")
    assert dataset.to_table(filter="i = 0")["j"].to_pylist() == ['{"e":{"f":2.5}}']


@pytest.mark.parametrize("library", [esker, lance])
def test_merges_take_json(tmp_path: Path, library: Any) -> None:
    dataset = library.write_dataset(columns(), tmp_path / "t")
    source = pa.table({"i": [0, 500], "j": pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"m":1}', "[1]"]))})
    dataset.merge_insert("i").when_matched_update_all().when_not_matched_insert_all().execute(source)
    found = library.dataset(tmp_path / "t").to_table(filter="i IN (0, 500)").sort_by("i")
    assert found["j"].to_pylist() == ['{"m":1}', "[1]"]


def test_columns_of_json_are_added(pair: tuple[esker.LanceDataset, Any]) -> None:
    dataset, _ = pair
    dataset.add_columns(pa.field("empty", pa.json_()))
    rows = dataset.count_rows()
    texts = pa.ExtensionArray.from_storage(pa.json_(), pa.array([f"[{i}]" for i in range(rows)]))
    dataset.add_columns(pa.table({"streamed": texts}).to_reader())

    @esker.batch_udf(output_schema=pa.schema([("made", pa.json_())]))
    def made(batch: pa.RecordBatch) -> pa.RecordBatch:
        read = [None if text is None else json.loads(text) for text in batch["streamed"].to_pylist()]
        return pa.record_batch(
            [pa.ExtensionArray.from_storage(pa.json_(), pa.array([json.dumps({"n": value}) for value in read]))],
            ["made"],
        )

    dataset.add_columns(made, read_columns=["streamed"])
    dataset.add_columns({"n": "json_get_int(json_get(made, 'n'), '0')"})
    other = pa.table({"i": [0], "joined": pa.ExtensionArray.from_storage(pa.json_(), pa.array(['"j"']))})
    dataset.merge(other, "i")
    expected = {"empty": None, "streamed": "[0]", "made": '{"n":[0]}', "n": 0, "joined": '"j"'}
    for library in (esker, lance):
        opened = library.dataset(dataset.uri)
        assert opened.to_table(filter="i = 0", columns=list(expected)).to_pylist() == [expected]
        assert [opened.schema.field(name).type for name in ("empty", "streamed", "made", "joined")] == [pa.json_()] * 4


def test_a_dataset_with_json_is_copied_to_another(pair: tuple[esker.LanceDataset, Any], tmp_path: Path) -> None:
    dataset, _ = pair
    copy = esker.write_dataset(dataset, tmp_path / "copy")
    assert copy.to_table() == dataset.to_table()
    assert stored(tmp_path / "copy") == stored(Path(dataset.uri))


def test_branches_and_versions_have_json(pair: tuple[esker.LanceDataset, Any]) -> None:
    dataset, _ = pair
    branch = dataset.create_branch("feature")
    esker.write_dataset(columns(["[7]"]), branch.uri, mode="append")
    assert esker.dataset(branch.uri).to_table(offset=len(DOCUMENTS))["j"].to_pylist() == ["[7]"]
    assert esker.dataset(dataset.uri).count_rows() == len(DOCUMENTS)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_files_hold_jsonb_and_say_so(tmp_path: Path, version: str) -> None:
    tables = []
    for name, writer in (("ours", LanceFileWriter), ("theirs", lance.file.LanceFileWriter)):
        path = str(tmp_path / f"{name}.lance")
        with writer(path, version=version) as file:
            file.write_batch(columns())
        tables += [reader(path).read_all().to_table() for reader in (LanceFileReader, lance.file.LanceFileReader)]
    assert all(table == tables[0] for table in tables)
    assert tables[0].schema.field("j").type == pa.large_binary()
    assert tables[0].schema.field("j").metadata[b"ARROW:extension:name"] == b"lance.json"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT j FROM dataset WHERE i < 3 ORDER BY i",
        "SELECT json_extract(j, '$.a') AS a, i FROM dataset WHERE json_exists(j, '$.a') ORDER BY i",
        "SELECT json_get(j, 'd') AS d FROM dataset LIMIT 1",
        "SELECT sum(json_array_length(j, '$.c')) AS n FROM dataset",
        "SELECT json_get_string(j, 't') AS t, count(*) AS n FROM dataset GROUP BY t ORDER BY n, t",
        "SELECT json_array_contains(j, '$.c', 'x') AS found FROM dataset WHERE j IS NOT NULL ORDER BY i",
    ],
)
def test_sql_queries_have_json(pair: tuple[esker.LanceDataset, Any], query: str) -> None:
    ours, theirs = (dataset.sql(query).build().to_stream_reader().read_all() for dataset in pair)
    assert ours.to_pylist() == theirs.to_pylist()
    assert ours.schema.types == theirs.schema.types


def test_duckdb_and_polars_read_json_as_text(pair: tuple[esker.LanceDataset, Any]) -> None:
    import duckdb
    import polars

    dataset, _ = pair
    assert duckdb.sql("SELECT CAST(j AS VARCHAR) FROM dataset WHERE i = 3").fetchall() == [("[1,2,3]",)]
    frame: Any = polars.from_arrow(dataset.to_table(columns=["j"], filter="i = 3"))
    assert frame["j"].to_list() == ["[1,2,3]"]


@pytest.mark.parametrize("shape", ["struct", "list"])
def test_a_cast_makes_json_of_the_text_within_a_value(tmp_path: Path, shape: str) -> None:
    rows = _within(pa.array(['{"a":1}', "[255]"]), shape)
    dataset = esker.write_dataset(rows, str(tmp_path / "t"), data_storage_version="2.2")
    wanted = _within(_json(['{"a":1}', "[255]"]), shape)
    dataset.alter_columns({"path": "j", "data_type": wanted.schema.field("j").type})
    assert dataset.to_table()["j"] == lance.dataset(dataset.uri).to_table()["j"] == wanted["j"]
    # It has this type already, so that nothing is written.
    dataset.alter_columns({"path": "j", "data_type": wanted.schema.field("j").type})
    assert esker.dataset(dataset.uri).to_table()["j"] == wanted["j"]
    damaged = esker.write_dataset(_within(pa.array(["{"]), shape), str(tmp_path / "damaged"))
    with pytest.raises(SchemaMismatchError, match="JSON"):
        damaged.alter_columns({"path": "j", "data_type": wanted.schema.field("j").type})


@pytest.mark.parametrize("type_", [pa.string(), pa.binary(), pa.large_binary()], ids=str)
@pytest.mark.parametrize("shape", ["struct", "list"])
def test_json_within_a_value_is_not_cast_as_its_stored_bytes(tmp_path: Path, shape: str, type_: pa.DataType) -> None:
    rows = _within(_json(['"abc"', '{"a":1}']), shape)
    dataset = esker.write_dataset(rows, str(tmp_path / "t"), data_storage_version="2.2")
    with pytest.raises(UnsupportedError, match="holds JSON"):
        dataset.alter_columns({"path": "j", "data_type": _within(pa.array([], type_), shape).schema.field("j").type})
    with pytest.raises(OSError, match="Cannot cast column"):
        lance.dataset(dataset.uri).alter_columns(
            {"path": "j", "data_type": _within(pa.array([], pa.int8()), shape).schema.field("j").type}
        )
    assert dataset.to_table() == rows
