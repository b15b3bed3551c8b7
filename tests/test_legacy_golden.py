"""The bytes of a file of version 0.1 that an earlier build wrote: read today, and written the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import lance
import pyarrow as pa

import esker
from esker.fragment import FragmentMetadata
from tests.samples import same
from tests.test_legacy import up_to_manifest

GOLDEN = Path(__file__).parent / "compat" / "golden" / "files" / "legacy_0_1.lance"


def table() -> pa.Table:
    """A column of each way to lay out a page."""
    return pa.table(
        {
            "flag": [True, False, True, True, False, False, True],
            "id": pa.array(range(7), pa.int16()),
            "text": ["a", None, "ccc", "dé", None, None, "z" * 70],
            "vector": pa.array([[i / 2, -i / 2] for i in range(7)], pa.list_(pa.float32(), 2)),
            "lists": [[1], [], [2, 3], [], [], [4, 5, 6], [7]],
            "rows": [[{"x": 1.5, "y": "p"}], [], [{"x": 2.5, "y": None}], [], [], [], [{"x": 0.5, "y": "q"}] * 2],
            "place": [{"zip": i, "city": f"c{i % 2}"} for i in range(7)],
            "kind": pa.array(["a", "b", None, "a", "b", "b", "c"]).dictionary_encode(),
            "none": pa.nulls(7),
        }
    )


def written(folder: Path) -> Path:
    esker.write_dataset(table(), folder, data_storage_version="legacy", max_rows_per_group=3)
    return next((folder / "data").iterdir())


def test_the_same_rows_are_the_same_bytes(tmp_path: Path) -> None:
    now, then = written(tmp_path / "t").read_bytes(), GOLDEN.read_bytes()
    assert up_to_manifest(now) == up_to_manifest(then)
    # The manifest names the release that wrote it.
    assert now[-8:] == then[-8:] == b"\0\0\2\0LANC"


def test_the_golden_file_reads_as_it_was_written(tmp_path: Path) -> None:
    # In the place of a file that was written now: both name the same fields.
    shutil.copyfile(GOLDEN, written(tmp_path / "t"))
    expected = table()
    assert esker.dataset(tmp_path / "t").to_table().to_pydict() == expected.to_pydict()
    assert lance.dataset(str(tmp_path / "t")).to_table().to_pydict() == expected.to_pydict()
    same(expected.drop_columns(["kind"]), esker.dataset(tmp_path / "t").to_table().drop_columns(["kind"]))


def test_the_golden_file_is_one_fragment(tmp_path: Path) -> None:
    written(tmp_path / "t")
    fragment = esker.dataset(tmp_path / "t").get_fragments()[0].metadata
    again = FragmentMetadata.from_json(fragment.to_json())
    assert again.files[0].fields == list(range(15))
    assert again.files[0].column_indices == []
