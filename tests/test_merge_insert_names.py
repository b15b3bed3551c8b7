"""Names in conditions of merges beside pylance's: row ids and addresses, and columns without a side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker

ROWS = pa.table(
    {
        "id": [1, 2, 3, 4, 5],
        "v": ["a", "b", "c", "d", None],
        "w": [1, 2, 3, 4, 5],
        "date": pa.array([1, 2, 3, 4, 5], pa.date32()),
        "s": [{"a": i} for i in range(5)],
    }
)
SOURCE = pa.table({"id": [2, 4, 5, 9], "v": ["B", "D", "E", "N"]})
CONDITIONS = [
    "_rowid > 2",
    "`_rowid` > 2",
    "target._rowid = 3 OR source.v = 'B'",
    "target._rowid IS NULL",
    "_rowaddr > 2",
    "target._rowaddr < 4294967296",
    "w > 2",
    "W > 2",
    "`w` > 2",
    "abs(w) > 2 AND source.v = 'E'",
    "(w + 1) * 2 > 6 AND source.v <> 'w'",
    "target.s.a > 2",
    "date > date '1970-01-03' AND w > 2",
]


def _merged(library: Any, path: Path, condition: str, stable: bool, upsert: bool) -> tuple[Any, Any]:
    dataset = library.write_dataset(
        ROWS, str(path / library.__name__), enable_stable_row_ids=stable, max_rows_per_file=3
    )
    dataset.delete("id = 1")
    dataset.update({"w": "7"}, where="id = 4")
    merge = dataset.merge_insert("id").when_matched_update_all(condition)
    counts = (merge.when_not_matched_insert_all() if upsert else merge).execute(SOURCE)
    return counts["num_updated_rows"], sorted(dataset.to_table().to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize("upsert", [False, True], ids=["update", "upsert"])
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_names_mean_the_same_rows(tmp_path: Path, condition: str, stable: bool, upsert: bool) -> None:
    theirs, ours = (_merged(library, tmp_path, condition, stable, upsert) for library in (lance, esker))
    assert ours == theirs


@pytest.mark.parametrize("condition", ["id > 2", "v = 'B'", "nope > 1", "source._rowid > 1", "source.w > 1"])
def test_a_name_that_both_sides_have_or_none_is_refused(tmp_path: Path, condition: str) -> None:
    for library in (lance, esker):
        with pytest.raises(OSError, match=r"(?i)no field|ambiguous|expected a"):
            _merged(library, tmp_path / library.__name__, condition, False, False)


def test_a_name_within_a_text_is_no_column(uri: str) -> None:
    dataset = esker.write_dataset(ROWS, uri)
    merge = dataset.merge_insert("id").when_matched_update_all("source.v = 'B' AND 'w' <> 'target' AND w > 1 -- w")
    assert merge.execute(SOURCE)["num_updated_rows"] == 1


def test_a_filter_that_is_no_condition_is_an_os_error(tmp_path: Path) -> None:
    for library in (lance, esker):
        merge = library.write_dataset(ROWS, str(tmp_path / library.__name__)).merge_insert("id")
        with pytest.raises(OSError, match="boolean"):
            merge.when_not_matched_by_source_delete("id").execute(SOURCE)
