"""The side-by-side runs work, and notice an engine that returns other rows."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("rich")
pytest.importorskip("matplotlib")

from benches import commits, compaction, run
from benches.growth import __main__ as growth
from benches.peers.parquet import Parquet, ParquetReader
from benches.peers.peer import Reader

SMALL = ["--rows", "2000", "--rounds", "1", "--inputs", "numbers", "nested"]


def test_a_small_run_reports_ratios(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engines = ["--engines", "esker", "parquet"]
    assert run.main([*SMALL, *engines, "--cases", "size", "scan", "take-100", "--output", str(tmp_path)]) == 0
    document = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert document["absent"] == []
    assert {(time["case"], time["engine"]) for time in document["times"]} == {
        (case, engine) for case in ("scan", "take-100") for engine in ("esker", "parquet")
    }
    assert (tmp_path / "ratios.png").stat().st_size > 1000
    assert "geometric mean" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"results.json", "ratios.png"}


def test_each_file_version_is_compared_in_a_run_of_its_own(tmp_path: Path) -> None:
    versions = ["2.0", "2.1", "2.2"]
    engines = ["--engines", "esker", "pylance", "--version", *versions]
    assert run.main([*SMALL, *engines, "--cases", "size", "open", "take-100", "--output", str(tmp_path)]) == 0
    for version in versions:
        document = json.loads((tmp_path / f"results-{version}.json").read_text(encoding="utf-8"))
        assert (document["file_version"], document["absent"]) == (version, [])
        assert all(f"file version {version}" in engine["settings"] for engine in document["engines"].values())
        assert {size["engine"] for size in document["sizes"]} == {"esker", "pylance"}
        assert (tmp_path / f"ratios-{version}.png").exists()


def test_wrong_rows_are_found_before_anything_is_timed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Forgetful(ParquetReader):
        def take(self, rows: pa.Array) -> pa.Table:
            return super().take(rows.take(list(reversed(range(len(rows))))))

    def open_forgetful(_: Parquet, path: Path) -> Reader:
        return Forgetful(path)

    monkeypatch.setattr(Parquet, "open", open_forgetful)
    assert run.main([*SMALL, "--engines", "parquet", "--cases", "scan", "--output", str(tmp_path)]) == 1
    assert "WRONG RESULT: take: the values differ" in capsys.readouterr().out


def test_commits_are_measured_beside_pylance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = ["append", "delete-10", "update-10", "update-few"]
    commits.main(["--rows", "2000", "--rounds", "1", "--scratch", str(tmp_path), "--cases", *cases])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(cases)
    assert all(float(line.split()[-1]) > 0 for line in lines[1:])
    assert not list(tmp_path.iterdir())


def test_a_small_compaction_is_measured_beside_pylance(capsys: pytest.CaptureFixture[str]) -> None:
    assert compaction.main(["--tables", "numbers", "--shapes", "small", "--scale", "100"]) == 0
    assert "| numbers | small |" in capsys.readouterr().out


def test_a_small_report_of_growth_has_all_series_and_pictures(tmp_path: Path) -> None:
    pages, scratch = tmp_path / "docs", tmp_path / "scratch"
    arguments = ["--rows", "20000", "--output", str(pages), "--scratch", str(scratch)]
    assert growth.main([*arguments, "--series", "rows", "fragments"]) == 0
    page = (pages / "performance.md").read_text(encoding="utf-8")
    for series in ("rows", "fragments"):
        assert f"performance/{series}.svg" in page
        assert (pages / "performance" / f"{series}.svg").stat().st_size > 10_000
    assert "take 1,000 rows" in page
    assert json.loads((scratch / "growth.json").read_text(encoding="utf-8"))["limits"]["memcpy"] > 0
    assert {path.name for path in scratch.iterdir()} == {"growth.json"}


def test_engines_that_answer_differently_have_no_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(ParquetReader):
        def count(self) -> int:
            return super().count() - 1

    def open_forgetful(_: Parquet, path: Path) -> Reader:
        return Forgetful(path)

    monkeypatch.setattr(Parquet, "open", open_forgetful)
    with pytest.raises(AssertionError, match="parquet zstd answered"):
        growth.main(["--rows", "5000", "--output", str(tmp_path), "--scratch", str(tmp_path), "--series", "rows"])
