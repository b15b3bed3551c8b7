"""`esker repo`: the commands at a terminal and in scripts."""

from __future__ import annotations

import io
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


def test_conflicts_are_listed_with_all_three_sides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    uri = str(tmp_path / "repo")
    run(capsys, "create", uri)
    file = tmp_path / "x.txt"
    for branch, text in (("main", "1"), ("dev", "22"), ("main", "333")):
        if branch == "dev":
            run(capsys, "branch", uri, "dev")
        file.write_text(text)
        run(capsys, "put", uri, branch, "a/x", str(file))
        run(capsys, "put", uri, branch, f"b/{branch}/{text}", str(file))
    assert main(["repo", "merge", uri, "dev", "main", "--json"]) == 1
    (conflict,) = json.loads(capsys.readouterr().out)["conflicts"]
    assert [conflict[side].split()[0] for side in ("base", "source", "dest")] == ["1", "2", "3"]
    assert main(["repo", "merge", uri, "dev", "main"]) == 1
    said = capsys.readouterr()
    assert "a/x" in said.out
    assert "1 paths were changed on both sides" in said.err
    folded = run(capsys, "diff", uri, "main", "dev", "--delimiter", "/")
    assert [(change["type"], change["path"]) for change in folded] == [
        ("prefix_changed", "a/"),
        ("prefix_changed", "b/"),
    ]
    assert run(capsys, "merge", uri, "dev", "main", "--strategy", "source-wins")["commit"]


def test_files_come_in_by_standard_input_and_garbage_is_only_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "repo")
    run(capsys, "create", uri)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"piped")))
    run(capsys, "put", uri, "main", "a")
    assert main(["repo", "cat", uri, "main", "a"]) == 0
    assert capsys.readouterr().out == "piped"
    assert main(["repo", "gc", uri]) == 0
    assert "--delete does it" in capsys.readouterr().out
    # A value that looks like markup is shown as it is.
    table = next((tmp_path / "repo" / "_lakefs").iterdir())
    assert main(["repo", "cat-sst", str(table)]) == 0
    assert "[static]" in capsys.readouterr().out


def test_bars_move_while_garbage_is_collected_and_refs_are_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "repo")
    run(capsys, "create", uri)
    file = tmp_path / "x.txt"
    file.write_text("hello")
    told: list[tuple[str, int, int | None]] = []
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("esker.cli.repository._shown", lambda bar: lambda *said: told.append(said))
    assert main(["repo", "put", uri, "main", "a", str(file)]) == 0
    assert main(["repo", "gc", uri, "--delete"]) == 0
    assert main(["repo", "fsck", uri]) == 0
    assert {what for what, _, _ in told} == {"marking what commits lead to", "checking what commits hold"}
    assert max(done for _, done, _ in told) == 1
