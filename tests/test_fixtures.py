"""Tables that old releases of Lance wrote open with the right rows, or say why not."""

from __future__ import annotations

import shutil
from pathlib import Path

import lance
import pytest

import esker
from tests.samples import same

FOLDER = Path(__file__).parents[2] / "shared" / "fixtures" / "lance"


def _tables() -> list[Path]:
    return sorted(path.parent for path in FOLDER.glob("v*/*/_versions"))


pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the folder ../shared/fixtures is not there")


@pytest.mark.parametrize("path", _tables(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_version_opens_with_the_rows_that_pylance_reads(path: Path, tmp_path: Path) -> None:
    # A copy: pylance may write a hint file beside what it opens.
    copy = shutil.copytree(path, tmp_path / path.name)
    dataset = esker.dataset(copy)
    for reference in dataset.version_refs():
        number = reference["version"]
        try:
            expected = lance.dataset(str(copy), version=number)
            rows = expected.to_table()
        except (OSError, ValueError):
            continue  # What the peer cannot read proves nothing.
        opened = dataset.checkout_version(number)
        assert opened.count_rows() == expected.count_rows()
        same(rows, opened.to_table())
