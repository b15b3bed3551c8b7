"""The command `esker`: what it prints for people and for scripts, and how it fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import esker
from esker.cli import main
from esker.delta import write_deltalake
from esker.file import LanceFileWriter
from esker.repo import Repository
from esker.storage_version import DEFAULT_STORAGE_VERSION
from tests.samples import people

Run = Callable[..., str]


@pytest.fixture
def table(uri: str) -> str:
    esker.write_dataset(people(25), uri, commit_message="first rows")
    esker.write_dataset(people(5, start=25), uri, mode="append")
    return uri


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str, code: int = 0) -> str:
        assert main(arguments) == code
        printed = capsys.readouterr()
        return printed.err if code else printed.out

    return run


def _json(run: Run, *arguments: str) -> Any:
    return json.loads(run(*arguments, "--json"))


def test_info_says_what_a_table_is(table: str, run: Run) -> None:
    found = _json(run, "info", table)
    assert (found["version"], found["rows"], found["fragments"], found["file_version"]) == (
        2,
        30,
        2,
        DEFAULT_STORAGE_VERSION,
    )
    assert found["bytes"] > 500
    assert _json(run, "info", table, "--at", "1")["rows"] == 25
    text = run("info", table)
    assert "latest version" in text
    assert "KiB" in text


def test_info_says_what_a_delta_table_is(tmp_path: Path, run: Run) -> None:
    uri = str(tmp_path / "d")
    write_deltalake(uri, pa.table({"p": ["a", "b"], "i": [1, 2]}), partition_by=["p"], name="events")
    write_deltalake(uri, pa.table({"p": ["a"], "i": [3]}), mode="append")
    found = _json(run, "info", uri)
    assert found["kind"] == "delta"
    assert (found["name"], found["version"], found["latest_version"], found["rows"]) == ("events", 1, 1, 3)
    assert (found["columns"], found["data_files"], found["partition_columns"]) == (2, 3, ["p"])
    assert found["bytes"] == sum(path.stat().st_size for path in Path(uri).rglob("*.parquet"))
    assert (found["min_reader_version"], found["min_writer_version"]) == (1, 2)
    assert found["features"] == []
    assert found["committed"].startswith("20")
    # Its file is younger than what the writer noted, as it is beside load.
    entry = Path(uri, "_delta_log", f"{0:020}.json")
    os.utime(entry, ns=(entry.stat().st_mtime_ns + 2_000_000,) * 2)
    earlier = _json(run, "info", uri, "--at", "0")
    assert (earlier["version"], earlier["latest_version"], earlier["rows"]) == (0, 1, 2)
    assert _json(run, "info", uri, "--at", earlier["committed"])["version"] == 0
    assert "found 'soon'" in run("info", uri, "--at", "soon", code=1)
    text = run("info", uri)
    assert "partition columns" in text
    assert "description" not in text, "nobody has given one"
    assert "no version" in run("info", uri, "--at", "7", code=1)


def test_info_names_the_features_of_a_delta_table_and_rows_that_no_statistics_tell(tmp_path: Path, run: Run) -> None:
    uri = str(tmp_path / "d")
    configuration = {"delta.enableDeletionVectors": "true", "delta.dataSkippingNumIndexedCols": "0"}
    deltalake.write_deltalake(uri, pa.table({"i": [1, 2]}), configuration=configuration)
    entry = next(Path(uri, "_delta_log").glob("*.json"))
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    for action in actions:
        action.get("add", {}).pop("stats", None)
    entry.write_text("".join(json.dumps(action) + "\n" for action in actions))
    found = _json(run, "info", uri)
    assert found["rows"] is None
    assert "deletionVectors" in found["features"]
    assert "not told by statistics" in run("info", uri)


def test_info_says_what_a_repository_is(tmp_path: Path, run: Run) -> None:
    uri = str(tmp_path / "r")
    repository = Repository.create(uri, metadata={"team": "lake"})
    main = repository.branch("main")
    main.object("a.txt").upload("hello")
    head = main.commit("first").get_commit()
    repository.tag("v1").create("main")
    repository.branch("dev").create("main")
    found = _json(run, "info", uri)
    assert (found["kind"], found["id"], found["default_branch"]) == ("repository", repository.id, "main")
    assert found["branches"] == {"dev": head.id, "main": head.id}
    assert found["tags"] == {"v1": head.id}
    assert (found["storage_namespace"], found["metadata"]) == (uri, {"team": "lake"})
    assert found["settings"]["retention_days"] == 21
    text = run("info", uri)
    assert text.count(head.id[:12]) == 3
    assert "storage namespace" in text
    assert "retention days" in text
    assert "found a repository; see esker repo log" in run("info", uri, "--at", "1", code=1)


def test_schema_lists_fields_with_ids(table: str, run: Run) -> None:
    fields = _json(run, "schema", table)["fields"]
    assert [field["path"] for field in fields][:6] == ["id", "score", "name", "vector", "place", "place.city"]
    assert [field["id"] for field in fields] == list(range(len(fields)))
    assert "fixed_size_list" in run("schema", table)


def test_versions_tell_what_made_each(table: str, run: Run) -> None:
    found = _json(run, "versions", table)
    assert [(item["version"], item["operation"], item["rows"]) for item in found] == [
        (1, "Overwrite", 25),
        (2, "Append", 30),
    ]
    assert found[0]["message"] == "first rows"
    assert "first rows" in run("versions", table)


def test_head_and_count_take_columns_and_filters(table: str, run: Run) -> None:
    rows = _json(run, "head", table, "-n", "2", "--columns", "id,name", "--filter", "id > 3")
    assert rows == [{"id": 4, "name": "name-4"}, {"id": 5, "name": "name-5"}]
    assert "name-4" in run("head", table, "-n", "5")
    assert run("count", table).strip() == "30"
    assert run("count", table, "--filter", "id > 3").strip() == "26"
    assert _json(run, "count", table, "--at", "1") == {"rows": 25}
    esker.dataset(table).tags.create("first", 1)
    assert _json(run, "count", table, "--at", "first") == {"rows": 25}
    assert _json(run, "info", table, "--at", "first")["version"] == 1
    assert "tag last does not exist" in run("head", table, "--at", "last", code=1)


def test_every_type_is_printed(uri: str, run: Run) -> None:
    from tests.samples import TYPES, column

    esker.write_dataset(pa.table({name: column(name, 4, nulls=0.2) for name in TYPES}), uri)
    assert len(_json(run, "head", uri)) == 4
    assert run("head", uri)


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        (pa.timestamp("s"), 2**62, "<value out of range: 4611686018427387904>"),
        (pa.timestamp("us", "Europe/Paris"), 2**62, "17036-07-06 14:00:27.387904Z"),
        (pa.timestamp("us", "Nowhere/Else"), 1, "1970-01-01 00:00:00.000001Z"),
        (pa.date32(), 10**6, "4707-11-29"),
        (pa.date32(), 2**31 - 1, "<value out of range: 2147483647>"),
        (pa.duration("s"), 2**63 - 1, "9223372036854775807 s"),
        (pa.time64("ns"), 1, "00:00:00.000000001"),
        (pa.timestamp("ns"), 1, "1970-01-01T00:00:00.000000001"),
    ],
)
def test_times_that_python_cannot_hold_are_printed(
    type_: pa.DataType, value: int, text: str, uri: str, run: Run
) -> None:
    times = (
        pa.array([value, None], pa.int64()).cast(pa.int32() if pa.types.is_date32(type_) else pa.int64()).view(type_)
    )
    structs = pa.StructArray.from_arrays([times], ["t"])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 1], pa.int32()), times)
    maps = pa.MapArray.from_arrays(pa.array([0, 1, 1], pa.int32()), pa.array(["k", "l"]), times)
    esker.write_dataset(pa.table({"t": times, "s": structs, "l": lists, "m": maps}), uri)
    first, second = _json(run, "head", uri)
    assert first == {"t": text, "s": {"t": text}, "l": [text], "m": [["k", text]]}
    assert second == {"t": None, "s": {"t": None}, "l": [], "m": []}
    assert text.replace("T", " ") in run("head", uri, "--columns", "t")


def test_inspect_shows_what_a_file_holds_where(table: str, run: Run) -> None:
    path = next(str(item) for item in Path(table, "data").iterdir())
    found = _json(run, "inspect", path)
    assert (found["file_version"], found["bytes"]) == (DEFAULT_STORAGE_VERSION, Path(path).stat().st_size)
    assert found["rows"] in (25, 5)
    columns = {column["field"]: column for column in found["columns"]}
    assert {"id", "score", "name", "vector", "place.city"} <= set(columns)
    page = columns["id"]["pages"][0]
    assert page["values"] == found["rows"]
    # 8 bytes a value, and a chunk's header around so few.
    assert 0.5 < columns["id"]["ratio"] <= 1.0
    texts = [column["ratio"] for column in found["columns"] if column["type"] == "string"]
    assert texts
    assert all(ratio > 0.4 for ratio in texts), "text is measured too"
    assert all(0 <= buffer["offset"] < found["bytes"] for buffer in page["buffers"])
    text = run("inspect", path)
    assert "vector" in text
    assert "from the first byte to the last" in text


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_inspect_says_why_each_page_is_what_it_is(version: str, tmp_path: Path, run: Run) -> None:
    path = str(tmp_path / "a.lance")
    with LanceFileWriter(path, version=version) as writer:
        writer.write_batch(pa.table({"n": [i % 9 for i in range(3000)], "s": [f"text {i}" for i in range(3000)]}))
    found = _json(run, "inspect", path, "--why")
    assert [page["field"] for page in found["pages"]] == ["n", "s"]
    for page in found["pages"]:
        names = {way["name"] for way in page["alternatives"]}
        chosen = [way for way in page["alternatives"] if way["chosen"]]
        assert len(chosen) == 1
        assert all(way["reason"] and way["bytes"] >= 0 for way in page["alternatives"])
        assert chosen[0]["reason"].startswith("the smallest")
        assert {"flat", "bit packed"} <= names or "variable" in names
    text = run("inspect", path, "--why")
    assert "bit packed" in text
    assert "> " in text
    small = _json(run, "inspect", path, "--why", "--compression", "small")
    ways = {way["name"] for page in small["pages"] for way in page["alternatives"]}
    assert any("zstd" in name for name in ways), "a small file has it"


def test_errors_are_one_line_and_a_code(table: str, run: Run) -> None:
    for arguments in (
        ("info", table + "-none"),
        ("head", table, "--columns", "nope"),
        ("count", table, "--filter", "id >"),
        ("info", table, "--at", "9"),
        ("info", table, "--storage-option", "x"),
        ("inspect", table + "/data/none.lance"),
        ("inspect", __file__),
    ):
        text = run(*arguments, code=1)
        assert text.startswith("error: ")
    with pytest.raises(SystemExit) as caught:
        main(["nonsense"])
    assert caught.value.code == 2


def test_the_module_runs_as_a_program(table: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "esker.cli", "count", table], capture_output=True, text=True, check=True
    )
    assert done.stdout == "30\n"


def test_cleanup_says_what_would_go_and_then_removes_it(table: str, run: Run) -> None:
    esker.write_dataset(people(3), table, mode="overwrite")
    asked = ("cleanup", table, "--older-than", "0s")
    found = _json(run, *asked, "--dry-run")
    kinds = [file["kind"] for file in found["candidate_files"]]
    assert sorted(kinds) == ["data", "data", "manifest", "manifest", "transaction", "transaction"]
    text = run(*asked, "--dry-run")
    assert "version 1" in text
    assert "would go" in text
    assert _json(run, "versions", table)[0]["version"] == 1
    stats = _json(run, *asked)
    assert stats == found["stats"]
    assert (stats["old_versions"], stats["data_files_removed"]) == (2, 2)
    assert [version["version"] for version in _json(run, "versions", table)] == [3]
    assert "old versions" in run("cleanup", table, "--retain", "1", "--keep-tagged")
    assert "found '2 weeks'" in run("cleanup", table, "--older-than", "2 weeks", code=1)


def test_compact_says_what_it_would_rewrite_and_then_does_it(table: str, run: Run) -> None:
    esker.write_dataset(people(25, start=30), table, mode="append")
    (group,) = _json(run, "compact", table, "--dry-run")
    assert (group["fragments"], group["rows"]) == ([0, 1, 2], 55)
    assert group["bytes"] > 500
    assert "0 to 2 (3)" in run("compact", table, "--dry-run")
    assert _json(run, "compact", table, "--dry-run", "--max-source-bytes", "1") == []
    assert _json(run, "info", table)["version"] == 3
    found = _json(run, "compact", table, "--memory-limit", "100000000")
    assert (found["fragments_removed"], found["fragments_added"], found["lost"], found["version"]) == (3, 1, [], 5)
    assert _json(run, "count", table) == {"rows": 55}
    text = run("compact", table, "--target-rows", "10")
    assert "fragments removed" in text
    assert "expected memory_limit > 0" in run("compact", table, "--memory-limit", "0", code=1)
