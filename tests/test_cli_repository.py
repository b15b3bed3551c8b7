"""`esker repo`: the commands at a terminal and in scripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from esker.cli import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    code = main(["repo", *arguments, "--json"])
    said = capsys.readouterr()
    assert code == 0, said.err
    return json.loads(said.out) if said.out else None


def test_a_repository_is_made_filled_and_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    uri = str(tmp_path / "repo")
    assert run(capsys, "create", uri)["default_branch"] == "main"
    file = tmp_path / "x.txt"
    file.write_text("hello")
    first = run(capsys, "put", uri, "main", "a/x.txt", str(file), "-m", "first")["commit"]
    run(capsys, "branch", uri, "dev", "--source", "main")
    run(capsys, "put", uri, "dev", "b.txt", str(file))
    run(capsys, "tag", uri, "v1", "--source", first[:12])
    assert run(capsys, "tag", uri) == {"v1": first}
    assert set(run(capsys, "branch", uri)) == {"main", "dev"}
    assert run(capsys, "diff", uri, "main", "dev") == [{"type": "added", "path": "b.txt", "size_bytes": 5}]
    run(capsys, "merge", uri, "dev", "main", "-m", "merged")
    assert [c["message"] for c in run(capsys, "log", uri)] == ["merged", "Put b.txt", "first", "Repository created"]
    assert [entry["path"] for entry in run(capsys, "ls", uri, "main")] == ["a/", "b.txt"]
    assert main(["repo", "cat", uri, "main", "a/x.txt"]) == 0
    assert capsys.readouterr().out == "hello"
    assert main(["repo", "log", uri, "--graph"]) == 0
    drawn = capsys.readouterr().out.splitlines()
    assert [line.split(" ")[0] for line in drawn] == ["*", "|", "|", "*", "|", "*"][: len(drawn)]
    assert run(capsys, "fsck", uri) == []
    assert run(capsys, "gc", uri)["objects"] == "0"


def test_a_table_is_told_with_what_its_records_mean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    uri = str(tmp_path / "repo")
    run(capsys, "create", uri)
    file = tmp_path / "x.txt"
    file.write_text("hello")
    run(capsys, "put", uri, "main", "a/x.txt", str(file))
    kinds = {}
    for table in (tmp_path / "repo" / "_lakefs").iterdir():
        found = run(capsys, "cat-sst", str(table))
        kinds[found["properties"]["type"]] = found
    assert kinds["ranges"]["records"][0]["size_bytes"] == 5
    assert kinds["ranges"]["records"][0]["key"] == "a/x.txt"
    assert kinds["metaranges"]["records"][0]["count"] == 1
    assert kinds["metaranges"]["properties"]["rocksdb.num.entries"] == "1"
    fixture = Path(__file__).parents[2] / "shared/fixtures/graveler/range.sst"
    if fixture.exists():
        assert [r["key"] for r in run(capsys, "cat-sst", str(fixture))["records"]] == ["a/b/c/no", "a/b/c/yes"]


def test_errors_go_to_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["repo", "log", str(tmp_path)]) == 1
    assert "no repository at" in capsys.readouterr().err
