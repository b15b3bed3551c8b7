"""A checkpoint that another writer puts anew while it is read: the table is no damaged one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import CorruptFileError
from tests.tree_branches import Watch, watched_stores
from tests.watched_stores import in_another_thread


@pytest.fixture
def watched() -> Iterator[dict[str, Watch]]:
    with watched_stores() as found:
        yield found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A table whose log is one checkpoint and the entry of its version."""
    made = tmp_path / "t"
    several = pa.table({"id": range(40), "p": [n % 20 for n in range(40)]})
    days = {"delta.logRetentionDuration": "interval 0 days"}
    write_deltalake(made, several, partition_by=["p"], configuration=days)
    write_deltalake(made, pa.table({"id": [40], "p": [0]}), mode="append")
    DeltaTable(made).delete("p % 2 = 1")
    DeltaTable(made).create_checkpoint()
    DeltaTable(made).cleanup_metadata()
    assert not (made / "_delta_log" / f"{0:020}.json").exists()
    return made


def _put_anew(path: Path) -> None:
    """Writes the checkpoint of the newest version once more: what was made of entries, of a checkpoint, so that the
    bytes are others."""
    *_, checkpoint = sorted((path / "_delta_log").glob("*.checkpoint.parquet"))
    before = checkpoint.read_bytes()
    DeltaTable(path).create_checkpoint()
    assert checkpoint.read_bytes() != before


@pytest.mark.parametrize("at", [*range(2, 12), 20, 40])
@pytest.mark.parametrize("how", ["open", "open a version", "append", "go to the newest"])
def test_a_checkpoint_that_is_put_anew_while_it_is_read_is_read_again(
    path: Path, watched: dict[str, Watch], how: str, at: int
) -> None:
    handle = DeltaTable(path)
    if how == "go to the newest":
        write_deltalake(path, pa.table({"id": [41], "p": [0]}), mode="append")
        DeltaTable(path).delete("p % 4 = 2")
        DeltaTable(path).create_checkpoint()
        DeltaTable(path).cleanup_metadata()
    expected = DeltaTable(path).to_pyarrow_table().num_rows
    seen = 0

    def put_anew(verb: str, place: str) -> None:
        nonlocal seen
        seen += 1
        if seen == at:
            in_another_thread(lambda: _put_anew(path))

    watched["f"] = put_anew
    if how == "append":
        write_deltalake(path, pa.table({"id": [41], "p": [0]}), mode="append")
        expected += 1
    elif how == "go to the newest":
        handle.update_incremental()
    else:
        handle = DeltaTable(path, version=2 if how == "open a version" else None)
    watched.clear()
    assert seen > 5
    assert DeltaTable(path).to_pyarrow_table().num_rows == expected
    if how != "append":
        assert handle.to_pyarrow_table().num_rows == expected


def test_a_damaged_checkpoint_is_still_said_to_be_one(path: Path) -> None:
    (checkpoint,) = (path / "_delta_log").glob("*.checkpoint.parquet")
    data = checkpoint.read_bytes()
    checkpoint.write_bytes(data[: len(data) // 2])
    with pytest.raises(CorruptFileError, match="ends with PAR1"):
        DeltaTable(path)
