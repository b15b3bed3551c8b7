"""What others have stored, on a terminal: it is shown, not obeyed; and numbers are numbers for scripts."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import esker
from esker.cli import main
from esker.delta import write_deltalake
from esker.repo import Repository

Run = Callable[..., str]
EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp.\u2028end\r\n\x00"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str, code: int = 0) -> str:
        assert main(arguments) == code
        printed = capsys.readouterr()
        return printed.err if code else printed.out

    return run


def _obeyed(text: str) -> list[str]:
    return [char for char in text if char != "\n" and (not char.isprintable() or "\u202a" <= char <= "\u202e")]


def test_values_names_and_metadata_do_not_drive_a_terminal(uri: str, run: Run) -> None:
    rows = pa.table({"s": [EVIL], EVIL.replace("\x00", "").replace(".", ""): [1]})
    esker.write_dataset(rows, uri, commit_message=EVIL.replace("\x00", ""))
    esker.dataset(uri).update_config({"evil": EVIL.replace("\x00", "")})
    for command in ("head", "schema", "versions", "info"):
        printed = run(command, uri)
        assert "owned" in printed
        assert not _obeyed(printed), command
        as_json = run(command, uri, "--json")
        assert not _obeyed(as_json), command
        json.loads(as_json)
    assert json.loads(run("head", uri, "--json"))[0]["s"] == EVIL
    assert "\\x1b]0;owned\\x07" in run("head", uri, "--columns", "s")
    assert not _obeyed(run("head", uri, "--filter", "s = '\x1b[2J' and nothing > 1", code=1))


def test_paths_and_messages_of_a_repository_do_not_drive_a_terminal(uri: str, run: Run) -> None:
    main_branch = Repository.create(uri).branch("main")
    main_branch.object("a\x1b[2Jb").upload(b"x")
    main_branch.commit("first\x1b[2J\nsecond line")
    for command in (("ls", uri, "main"), ("log", uri), ("show", uri), ("diff", uri, "main~1", "main")):
        printed = run("repo", *command)
        assert not _obeyed(printed), command
        assert "\\x1b[2J" in printed, command


def test_json_of_numbers_that_are_none_is_json(uri: str, run: Run) -> None:
    values = [float("nan"), float("inf"), float("-inf"), 1.5, None]
    esker.write_dataset(pa.table({"x": values, "l": [[v] for v in values]}), uri)
    found = json.loads(run("head", uri, "--json"), parse_constant=pytest.fail)
    assert [row["x"] for row in found] == ["NaN", "Infinity", "-Infinity", 1.5, None]
    assert found[0]["l"] == ["NaN"]


def _on_a_terminal(columns: int, *arguments: str) -> str:
    import fcntl
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen([sys.executable, "-m", "esker", *arguments], stdout=theirs, stderr=subprocess.DEVNULL)
    os.close(theirs)
    printed = b""
    try:
        while part := os.read(ours, 65536):
            printed += part
    except OSError:
        # The other end is closed.
        pass
    assert process.wait() == 0
    return printed.decode()


def test_rows_of_many_columns_are_shown_one_below_the_other(uri: str, run: Run) -> None:
    esker.write_dataset(pa.table({f"column_{i}": [i * 1000, i] for i in range(60)}), uri)
    for printed in (_on_a_terminal(100, "head", uri), run("head", uri)):
        lines = printed.splitlines()
        assert any("column_59" in line and "59000" in line for line in lines)
        assert "row 2" in printed
        assert "2 of 2 rows" in lines[0]
    few = _on_a_terminal(100, "head", uri, "--columns", "column_3,column_5")
    assert "row 2" not in few
    assert any("3000" in line and "5000" in line for line in few.splitlines())


def test_a_title_is_not_folded_to_the_width_of_its_table(uri: str, run: Run) -> None:
    esker.write_dataset(pa.table({"i": list(range(25))}), uri)
    assert run("head", uri).splitlines()[0] == "10 of 25 rows"


@pytest.mark.parametrize("value", ["-1", "1.5", "ten", ""])
def test_amounts_are_numbers_from_zero_on(value: str, uri: str, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    esker.write_dataset(pa.table({"i": [1]}), uri)
    for call in (["head", uri, "-n", value], ["repo", "log", uri, "-n", value], ["cleanup", uri, "--retain", value]):
        with pytest.raises(SystemExit) as caught:
            main(call)
        assert caught.value.code == 2
        assert "expected a number from 0 on" in capsys.readouterr().err or value.startswith("-")
    assert run("head", uri, "-n", "0").startswith("0 of 1 rows")


def test_numbers_of_repositories_are_numbers_in_json(uri: str, run: Run) -> None:
    Repository.create(uri)

    def numbers(*arguments: str) -> Any:
        return json.loads(run("repo", *arguments, "--json"))

    assert {type(value) for value in numbers("gc", uri).values()} <= {int, bool, float}
    assert isinstance(numbers("pack-refs", uri)["commits"], int)
    assert run("repo", "fsck", uri) == "nothing is missing or damaged\n"
    assert numbers("fsck", uri) == []


def test_a_command_on_another_kind_of_table_says_what_is_there(tmp_path: Path, run: Run) -> None:
    delta, repo = str(tmp_path / "d"), str(tmp_path / "r")
    write_deltalake(delta, pa.table({"a": [1]}))
    Repository.create(repo)
    for command in ("schema", "head", "count", "versions"):
        assert "found a Delta table; open it with esker.delta.DeltaTable" in run(command, delta, code=1)
        assert "found a repository; see esker repo" in run(command, repo, code=1)
        assert "no table at" in run(command, str(tmp_path / "none"), code=1)


def test_the_package_runs_as_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "esker", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"esker {esker.__version__}"


@pytest.mark.parametrize("how", [(), ("--json",)])
def test_a_reader_that_closes_the_pipe_is_no_error(how: tuple[str, ...], uri: str) -> None:
    esker.write_dataset(pa.table({"n": range(100)}), uri)
    theirs, ours = os.pipe()
    os.close(theirs)
    done = subprocess.run([sys.executable, "-m", "esker", "head", uri, *how], stdout=ours, stderr=subprocess.PIPE)
    os.close(ours)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no disk that is always full")
@pytest.mark.parametrize("command", [("count",), ("head",), ("head", "--json")])
def test_a_full_disk_is_one_line_and_a_code(command: tuple[str, ...], uri: str) -> None:
    esker.write_dataset(pa.table({"n": range(100)}), uri)
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "esker", *command, uri], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (1, "error: [Errno 28] No space left on device\n")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_characters_that_an_output_lacks_are_escaped(encoding: str, uri: str) -> None:
    esker.write_dataset(pa.table({"name": ["Zoë 😀"]}), uri)

    def printed(*how: str) -> str:
        command = [sys.executable, "-m", "esker", "head", uri, *how]
        environment = {**os.environ, "PYTHONIOENCODING": encoding}
        return subprocess.run(command, env=environment, capture_output=True, check=True).stdout.decode(encoding)

    assert json.loads(printed("--json")) == [{"name": "Zoë 😀"}]
    assert ("😀" if encoding == "utf-8" else "\\U0001f600") in printed()
