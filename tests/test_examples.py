"""The programs of `examples/` run in an empty folder, and say what they should."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark_programs import SparkPrograms, spark_programs

EXAMPLES = Path(__file__).parent.parent / "examples"

SAYS = {
    "features.py": ["since monday: 100 inserted, 100 updated", "version 4 is monday's again: 1000 users"],
    "images.py": ["300 images", "width and height of image 123: (64, 64)"],
    "delta_events.py": ["version 35: 108 events", "files of that day: 12 of 36", "after the correction: 75 events"],
    "lake_branch.py": ["tuesday stays out: 1 of 4 sales", "main has 2 sales, tuesday's branch 4"],
    "spark_pipeline.py": ["5000 embeddings in version 1, type fixed_size_list<item: float>[2]", "longest texts: 714"],
}


PIPELINE = [
    ("upsert.py", "100 users in version 2"),
    ("upsert.py", "150 users in version 3"),
    ("feed.py", "150 insert, 50 update_postimage"),
    ("lookup.py", "user 60: insert, update_postimage"),
]
"""The steps of `examples/pipeline`, in turn, and what each says."""


def test_every_example_is_run_here_and_short() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(SAYS)
    assert {path.name for path in (EXAMPLES / "pipeline").glob("*.py")} == {name for name, _ in PIPELINE}
    assert [path.name for path in EXAMPLES.rglob("*.py") if len(path.read_text().splitlines()) >= 80] == []


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkPrograms]:
    with spark_programs(tmp_path_factory.mktemp("programs")) as found:
        yield found


@pytest.mark.parametrize("name", [name for name in SAYS if "spark" not in name])
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / name), str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert [text for text in SAYS[name] if text not in done.stdout] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SAYS if "spark" in name])
def test_an_example_runs_with_spark(name: str, programs: SparkPrograms, tmp_path: Path) -> None:
    done = programs.run(EXAMPLES / name, str(tmp_path))
    assert done.returncode == 0, done.stderr[-4000:]
    assert [text for text in SAYS[name] if text not in done.stdout] == []


@pytest.mark.slow
def test_the_steps_of_the_pipeline_run_in_turn(programs: SparkPrograms, tmp_path: Path) -> None:
    for name, says in PIPELINE:
        done = programs.run(EXAMPLES / "pipeline" / name, str(tmp_path / "p"))
        assert done.returncode == 0, done.stderr[-4000:]
        assert says in done.stdout
