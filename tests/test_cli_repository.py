"""`esker repo`: the commands at a terminal and in scripts."""

from __future__ import annotations

import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from esker.cli import main
from esker.cli.repo.graph import Graph
from esker.exceptions import InvalidArgumentError
from esker.repo import Repository


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
    shown = [re.sub(r"[0-9a-f]{12} .*: ", "", line) for line in capsys.readouterr().out.splitlines()]
    assert shown == ["* merged", "|\\", "| * Put b.txt", "|/", "* first", "* Repository created"]
    assert run(capsys, "fsck", uri) == []
    assert run(capsys, "gc", uri)["objects"] == 0


def test_a_commit_whose_time_lies_in_no_calendar_is_told_with_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = str(tmp_path / "repo")
    branch = Repository.create(uri).branch("main")
    for date in (0, 1_796_082_440_000, 2**62, -(2**62)):
        branch.commit(f"at {date}", date=date, allow_empty=True)
    for command in (["repo", "log", uri], ["info", uri]):
        assert main(command) == 0
        shown = capsys.readouterr().out
        assert f"@{-(2**62)}" in shown
    assert main(["repo", "log", uri]) == 0
    shown = capsys.readouterr().out
    assert "@1796082440000 " in shown
    assert "1970-01-01 00:00 " in shown
    odd: list[Any] = [1.5, "now", 2**63]
    for wrong in odd:
        with pytest.raises(InvalidArgumentError, match="whole seconds"):
            branch.commit("never", date=wrong, allow_empty=True)


def drawn(history: list[tuple[str, str]]) -> list[str]:
    graph, lines = Graph(), []
    for id, parents in history:
        above, own, below = graph.add(id, list(parents))
        lines += [*above, f"{own} {id}", *below]
    return lines


def test_a_graph_shows_who_came_from_whom() -> None:
    assert drawn([("z", "yx"), ("y", "wv"), ("x", "w"), ("v", "u"), ("w", "u"), ("u", "")]) == [
        "* z",
        "|\\",
        "* | y",
        "|\\ \\",
        "| | * x",
        "| * | v",
        "|_|/",
        "* | w",
        "|/",
        "* u",
    ]
    assert drawn([("m", "ab"), ("n", "ab"), ("a", "c"), ("b", "c"), ("c", "")]) == [
        "* m",
        "|\\",
        "| | * n",
        "| | |\\",
        "|_|/ /",
        "* | | a",
        "| |/",
        "| * b",
        "|/",
        "* c",
    ]
    # Histories that share nothing: what is on the right moves up.
    assert drawn([("b", ""), ("a", "")]) == ["* b", "* a"]
    assert drawn([("m", "xy"), ("x", ""), ("y", "")]) == ["* m", "|\\", "* | x", " /", "* y"]


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
    monkeypatch.setattr(
        "esker.cli.output._Bar.report", lambda bar, done: told.append((done.step, done.count, done.total))
    )
    assert main(["repo", "put", uri, "main", "a", str(file)]) == 0
    assert told == [("writing", 5, 5)]
    told.clear()
    assert main(["repo", "gc", uri, "--delete"]) == 0
    assert main(["repo", "fsck", uri]) == 0
    assert {what for what, _, _ in told} == {"marking what commits lead to", "checking what commits hold"}
    assert max(done for _, done, _ in told) == 1


@pytest.fixture
def lake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    uri = str(tmp_path / "lake")
    run(capsys, "create", uri, "--meta", "team=birds")
    folder = tmp_path / "folder"
    for path, text in (("a.txt", "1"), ("deep/b.txt", "22"), ("deep/er/c.txt", "333")):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return uri


def failed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["repo", *arguments]) == 1
    return capsys.readouterr().err


def paths(capsys: pytest.CaptureFixture[str], uri: str, ref: str = "main") -> list[str]:
    return [entry["path"] for entry in run(capsys, "ls", uri, ref, "-r")]


def test_files_and_folders_go_in_and_out_in_one_commit(
    lake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "folder"
    put = run(capsys, "put", lake, "main", "in", str(folder), "-m", "folder", "--meta", "job=17", "--meta", "k=a=b")
    assert put["objects"] == 3
    assert paths(capsys, lake) == ["in/a.txt", "in/deep/b.txt", "in/deep/er/c.txt"]
    told = run(capsys, "show", lake)
    assert (told["id"], told["message"], told["metadata"]) == (put["commit"], "folder", {"job": "17", "k": "a=b"})
    files = [str(folder / "a.txt"), str(folder / "deep/b.txt")]
    run(capsys, "put", lake, "main", "", *files, "--content-type", "text/plain", "--object-meta", "o=1")
    run(capsys, "put", lake, "main", "one/", files[0])
    assert paths(capsys, lake) == ["a.txt", "b.txt", "in/a.txt", "in/deep/b.txt", "in/deep/er/c.txt", "one/a.txt"]
    known = run(capsys, "stat", lake, "main", "b.txt")
    assert (known["size_bytes"], known["content_type"], known["metadata"]) == (2, "text/plain", {"o": "1"})
    assert main(["repo", "stat", lake, "main", "b.txt"]) == 0
    assert "metadata o" in capsys.readouterr().out
    assert run(capsys, "export", lake, "main", str(tmp_path / "out"), "--prefix", "in/deep/") == {"objects": 2}
    assert (tmp_path / "out/in/deep/er/c.txt").read_text() == "333"
    assert "found nothing at" in failed(capsys, "put", lake, "main", "x", str(tmp_path / "none"))
    (tmp_path / "empty").mkdir()
    assert "found none in" in failed(capsys, "put", lake, "main", "x", str(tmp_path / "empty"))
    assert "found 1 twice" in failed(capsys, "put", lake, "main", "x", files[0], files[0])
    assert "expected --meta KEY=VALUE" in failed(capsys, "put", lake, "main", "x", files[0], "--meta", "nothing")
    removed = run(capsys, "rm", lake, "main", "a.txt", "one/a.txt", "--meta", "why=old")
    assert removed["objects"] == 2
    assert run(capsys, "show", lake, "main")["metadata"] == {"why": "old"}
    assert "nothing was removed" in failed(capsys, "rm", lake, "main", "b.txt", "gone")
    run(capsys, "rm", lake, "main", "-r", "in/deep/")
    assert paths(capsys, lake) == ["b.txt", "in/a.txt"]


def test_imports_are_references(lake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "folder")
    made = run(capsys, "import", lake, "main", folder, "there/", "-m", "imported", "--meta", "k=v")
    assert made["objects"] == 3
    assert run(capsys, "show", lake)["id"] == made["commit"]
    run(capsys, "import", lake, "main", f"{folder}/a.txt", "one.txt", "--object")
    assert run(capsys, "stat", lake, "main", "one.txt")["address_type"] == "full"
    assert main(["repo", "cat", lake, "main", "there/deep/er/c.txt"]) == 0
    assert capsys.readouterr().out == "333"


def test_a_branch_goes_back_and_forth(lake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "folder/a.txt")
    first = run(capsys, "put", lake, "main", "a", file)["commit"]
    run(capsys, "branch", lake, "dev")
    second = run(capsys, "put", lake, "dev", "b", file, "-m", "b")["commit"]
    assert run(capsys, "merge-base", lake, "main", "dev") == {"commit": first}
    picked = run(capsys, "cherry-pick", lake, "main", "dev")["commit"]
    assert run(capsys, "show", lake, picked[:16])["metadata"]["cherry-pick-origin"] == second
    run(capsys, "revert", lake, "main", "main~1")
    assert paths(capsys, lake) == ["b"]
    assert run(capsys, "reset", lake, "main", picked) == {"commit": picked}
    assert paths(capsys, lake) == ["a", "b"]
    assert run(capsys, "log", lake, "--object", "a", "-n", "1")[0]["id"] == first
    run(capsys, "put", lake, "dev", "c", file)
    merged = run(capsys, "merge", lake, "dev", "main", "--meta", "why=because")["commit"]
    assert "parent_number" in failed(capsys, "revert", lake, "main", merged)
    run(capsys, "revert", lake, "main", merged, "--parent-number", "1")
    assert run(capsys, "show", lake, merged)["metadata"] == {"why": "because"}
    assert len(run(capsys, "log", lake, "--first-parent", "--stop-at", first)) == 4
    assert run(capsys, "log", lake, "--since", "2100-01-01") == []
    assert run(capsys, "log", lake, "--after", merged, "-n", "1")[0]["id"] != merged
    assert "expected a time" in failed(capsys, "log", lake, "--since", "yesterday")
    assert main(["repo", "show", lake, "dev"]) == 0
    assert "Put c" in capsys.readouterr().out


def test_settings_and_protection_are_for_all_who_open_it(
    lake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "settings", lake)["retention_days"] == 21
    changed = run(capsys, "settings", lake, "retention_days=90", 'branch_retention_days={"main": 9}', "grace_s=60")
    assert (changed["retention_days"], changed["branch_retention_days"], changed["grace_s"]) == (90, {"main": 9}, 60)
    assert run(capsys, "settings", lake, "protected_branches=main, release-*")["protected_branches"] == [
        "main",
        "release-*",
    ]
    assert main(["repo", "settings", lake]) == 0
    assert "main, release-*" in capsys.readouterr().out
    for wrong in (
        "retention_days=long",
        "retention_days=1.5",
        "nothing=1",
        "retention_days",
        "branch_retention_days=3",
    ):
        assert "expected" in failed(capsys, "settings", lake, wrong)
    assert run(capsys, "protect", lake, "dev") == ["main", "release-*", "dev"]
    assert run(capsys, "protect", lake, "main", "--delete") == run(capsys, "protect", lake) == ["release-*", "dev"]
    assert "found 'main'" in failed(capsys, "protect", lake, "main", "--delete")
    run(capsys, "branch", lake, "dev")
    assert "is protected" in failed(capsys, "put", lake, "dev", "a", str(tmp_path / "folder/a.txt"))


def test_refs_are_packed_dumped_and_restored(lake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "put", lake, "main", "a", str(tmp_path / "folder/a.txt"))
    run(capsys, "tag", lake, "v1")
    assert run(capsys, "pack-refs", lake) == {"commits": 2}
    dump = run(capsys, "refs-dump", lake)
    copy = str(tmp_path / "copy")
    run(capsys, "create", copy)
    shutil.copytree(Path(lake, "_lakefs"), Path(copy, "_lakefs"), dirs_exist_ok=True)
    shutil.copytree(Path(lake, "data"), Path(copy, "data"))
    (tmp_path / "manifest.json").write_text(json.dumps(dump))
    (tmp_path / "wrong.json").write_text("{}")
    assert "expected JSON with commits_meta" in failed(capsys, "refs-restore", copy, str(tmp_path / "wrong.json"))
    assert run(capsys, "refs-restore", copy, str(tmp_path / "manifest.json")) == {"branches": 1, "tags": 1}
    assert run(capsys, "tag", copy) == run(capsys, "tag", lake)
    assert paths(capsys, copy) == ["a"]
    assert "say --yes" in failed(capsys, "delete", copy)
    run(capsys, "delete", copy, "--yes")
    assert "no repository at" in failed(capsys, "log", copy)
