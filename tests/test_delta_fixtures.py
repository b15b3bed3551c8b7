"""Delta's golden tables open with the rows beside them, or say why not."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from esker import exceptions
from esker.delta import DeltaTable
from tests.delta_rows import rows

FOLDER = Path(__file__).parents[2] / "shared" / "fixtures" / "delta"
# Spark wrote the partition timestamps of this one in the zone of its session.
ZONES = {"data-reader-partition-values": "America/Los_Angeles"}
# Without rows beside them: what opening them gives, as the number of files or as an error.
OTHERS: dict[str, int | tuple[type[Exception], str]] = {
    "canonicalized-paths-normal-a": 0,
    "canonicalized-paths-special-a": 0,
    "checkpoint": 1,
    "data-reader-absolute-paths-escaped-chars": (exceptions.CorruptFileError, "metaData"),
    "delete-re-add-same-file-different-transactions": 2,
    "deltalog-state-reconstruction-from-checkpoint-missing-metadata": (exceptions.CorruptFileError, "schemaString"),
    "deltalog-state-reconstruction-without-metadata": (exceptions.CorruptFileError, "metaData"),
    "hive": (exceptions.NotFoundError, "no Delta table"),
    "log-replay-special-characters-b": 1,
    "versions-not-contiguous": (exceptions.CorruptFileError, "version 1"),
}

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the folder ../shared/fixtures is not there")


def _with_rows() -> list[Path]:
    return sorted(path for path in FOLDER.glob("*") if (path / "expected").is_dir())


def _expected(path: Path) -> pa.Table:
    files = sorted((path / "expected").glob("*.parquet"))
    return pa.concat_tables(pq.read_table(file, coerce_int96_timestamp_unit="us") for file in files)


@pytest.mark.parametrize("path", _with_rows(), ids=lambda path: path.name)
def test_a_golden_table_has_the_rows_beside_it(path: Path) -> None:
    table = DeltaTable(path / "delta", timezone=ZONES.get(path.name))
    expected = _expected(path)
    # The stream and the dataset are the same rows in two other ways.
    for found in (table.to_pyarrow_table(), pa.table(table), table.to_pyarrow_dataset().to_table()):
        if expected.num_rows < 10_000:
            assert rows(found) == rows(expected)
        else:
            order = [(name, "ascending") for name in expected.column_names]
            wanted = expected.select(found.column_names).cast(found.schema)
            assert found.sort_by(order).equals(wanted.sort_by(order))


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_a_golden_table_without_rows_is_what_its_name_says(name: str) -> None:
    expected = OTHERS[name]
    if isinstance(expected, int):
        assert len(DeltaTable(FOLDER / name / "delta").file_uris()) == expected
        return
    error, words = expected
    with pytest.raises(error, match=words):
        DeltaTable(FOLDER / name / "delta")


def test_no_golden_table_is_left_out() -> None:
    assert {path.name for path in _with_rows()} | set(OTHERS) >= {path.name for path in FOLDER.iterdir()}
