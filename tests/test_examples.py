"""The programs of `examples/` run in an empty folder, and say what they should."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * ("spark" in name)) for name in SAYS])
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    if name.startswith("spark"):
        pytest.importorskip("pyspark")
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert [text for text in SAYS[name] if text not in done.stdout] == []


@pytest.mark.slow
def test_the_steps_of_the_pipeline_run_in_turn(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    for name, says in PIPELINE:
        done = subprocess.run(
            [sys.executable, str(EXAMPLES / "pipeline" / name), str(tmp_path / "p")],
            cwd=tmp_path,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        assert says in done.stdout
