"""Scans of random tables, beside a plain model and the peers; see `tests/fuzzing/scans.py`."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.dataset import ColumnOrdering as PeerOrdering

import esker
from esker.dataset import ColumnOrdering
from tests.fuzzing.scans import Difference, run_case

CASES = 300


@pytest.mark.parametrize("first", range(0, CASES, 100))
def test_random_scans_answer_as_the_model_and_the_peers(first: int, tmp_path: Path) -> None:
    differences = []
    for seed in range(first, first + 100):
        try:
            run_case(seed, tmp_path)
        except Difference as difference:
            differences.append(str(difference))
    assert not differences, f"{len(differences)} seeds differ\n" + "\n".join(differences[:5])


def test_the_peer_still_panics_on_the_first_0_rows_of_an_order(uri: str) -> None:
    peer = lance.write_dataset(pa.table({"id": [1]}), uri)
    with pytest.raises(BaseException):  # noqa: B017, PT011  # A panic is no `Exception`.
        peer.scanner(order_by=["id"], limit=0).to_table()


def test_the_peer_still_loses_the_first_of_structs_that_hold_nulls(uri: str) -> None:
    rows = [{"x": None if number >= 15 else number} for number in range(20)]
    peer = lance.write_dataset(pa.table({"s": rows, "id": range(20)}), uri, max_rows_per_file=5)
    order = [PeerOrdering("s", ascending=False, nulls_first=True)]
    whole = peer.scanner(order_by=order).to_table()["id"].to_pylist()
    assert whole[:3] == [15, 16, 17]
    assert peer.scanner(order_by=order, limit=3).to_table()["id"].to_pylist() != whole[:3]
    ours = esker.dataset(uri)
    key = ColumnOrdering("s", ascending=False, nulls_first=True)
    assert ours.to_table(order_by=[key])["id"].to_pylist() == whole
    assert ours.to_table(order_by=[key], limit=3)["id"].to_pylist() == whole[:3]
