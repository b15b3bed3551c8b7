"""The wheel itself, as `make check` builds it: what it holds, and that it works where no clone is in reach."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

WHEEL = os.environ.get("ESKER_WHEEL")
pytestmark = pytest.mark.skipif(not WHEEL, reason="ESKER_WHEEL names no wheel; `make check` builds one")

SCRIPT = """
import esker, pyarrow as pa, pyspark_esker
from pathlib import Path
table = esker.write_dataset(pa.table({"id": [1, 2, 3]}), "t.lance")
print(table.count_rows("id > 1"), esker.__version__)
print(Path(esker.__file__).parent.parent, Path(pyspark_esker.__file__).parent.parent)
"""


@pytest.fixture(scope="module")
def names() -> list[str]:
    with zipfile.ZipFile(str(WHEEL)) as wheel:
        return wheel.namelist()


def test_the_wheel_is_one_for_all_pythons_from_3_11() -> None:
    assert "-cp311-abi3-" in Path(str(WHEEL)).name


def test_the_wheel_holds_both_packages_their_types_and_no_more(names: list[str]) -> None:
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if ".dist-info" not in top and ".libs" not in top} == {"esker", "pyspark_esker"}
    for wanted in (
        "esker/py.typed",
        "esker/_native.abi3.so",
        "esker/_native/__init__.pyi",
        "pyspark_esker/__init__.py",
    ):
        assert wanted in names
    assert [name for name in names if name.endswith((".pyc", ".rs"))] == []


def test_the_wheel_stays_small() -> None:
    assert Path(str(WHEEL)).stat().st_size < 64 * 1024 * 1024


def test_the_wheel_works_on_its_own(tmp_path: Path) -> None:
    target = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(WHEEL)]
    subprocess.run(install, check=True)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    count, version, *places = done.stdout.split()
    assert (count, places) == ("2", [str(target), str(target)])
    assert f"esker-{version}-" in Path(str(WHEEL)).name
