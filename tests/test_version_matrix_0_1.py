"""The cells of the version matrix in version 0.1, which keeps few nulls: through tables, beside pylance.

What pylance makes of a cell in 0.1 is what we must read, nulls that turned into zeros and all.
"""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import esker
from esker.exceptions import UnsupportedError
from tests.matrix import LEAVES, NULLS, ROWS, SHAPES, shaped
from tests.test_version_matrix import DICTIONARIES, TEXTS, _difference

TAKEN = [0, 1, 511, 512, 513, 1023, 1024, 1025, ROWS - 1]
REFUSED = ("map", "empty_struct")
"""Leaf types that 0.1 does not have."""


def _peer_panics(leaf: str, shape: str) -> bool:
    """Whether pylance's writer panics: fixed-size lists of anything but fixed width."""
    return shape == "fixed" and leaf in (*TEXTS, *DICTIONARIES, "null")


@pytest.mark.parametrize("leaf", [leaf for leaf in LEAVES if leaf not in REFUSED])
def test_every_cell_is_read_as_pylance_reads_it(leaf: str, tmp_path: Path) -> None:
    failures = []
    for shape, nulls in [(s, n) for s in SHAPES for n in NULLS if not _peer_panics(leaf, s)]:
        table = pa.table({"c": shaped(leaf, shape, nulls, null_structs=False)})
        uri = str(tmp_path / f"{shape}-{nulls}")
        lance.write_dataset(table, uri, data_storage_version="0.1", max_rows_per_group=512)
        # Opened anew: the dataset that wrote still has the dictionary that it was given.
        expected = lance.dataset(uri).to_table()
        dataset = esker.dataset(uri)
        found = _difference(expected, dataset.to_table()) or _difference(expected.take(TAKEN), dataset.take(TAKEN))
        if found:
            failures.append(f"{shape}, {nulls} null: {found:.300}")
    assert not failures, "\n".join(failures)


def _emptied(column: pa.ChunkedArray) -> pa.Array:
    """Fixed-size lists with nulls wherever a list is null: pylance keeps what happens to lie there, we write zeros."""
    lists = column.combine_chunks()
    hidden = lists.is_null().to_numpy(zero_copy_only=False).repeat(3)
    below = pa.array(range(len(lists.values)), pa.int64(), mask=hidden)
    return pa.FixedSizeListArray.from_arrays(lists.values.take(below), 3, mask=lists.is_null())


@pytest.mark.parametrize("leaf", [leaf for leaf in LEAVES if leaf not in REFUSED])
def test_every_cell_is_written_so_that_both_read_what_pylance_would_have_kept(leaf: str, tmp_path: Path) -> None:
    failures = []
    for shape, nulls in [(s, n) for s in SHAPES for n in NULLS if not _peer_panics(leaf, s)]:
        table = pa.table({"c": shaped(leaf, shape, nulls, null_structs=False)})
        ours, theirs = str(tmp_path / f"{shape}-{nulls}-ours"), str(tmp_path / f"{shape}-{nulls}-theirs")
        kept = pa.table({"c": _emptied(table["c"])}) if shape == "fixed" else table
        lance.write_dataset(kept, theirs, data_storage_version="0.1", max_rows_per_group=512)
        expected = lance.dataset(theirs).to_table()
        try:
            esker.write_dataset(table, ours, data_storage_version="0.1", max_rows_per_group=512, allow_null_loss=True)
            found = (
                _difference(expected, lance.dataset(ours).to_table())
                or _difference(expected, esker.dataset(ours).to_table())
                or _difference(expected.take(TAKEN), esker.dataset(ours).take(TAKEN))
            )
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        if found:
            failures.append(f"{shape}, {nulls} null: {found:.300}")
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("leaf", [leaf for leaf in LEAVES if leaf not in REFUSED])
def test_no_cell_loses_a_value_unless_it_may(leaf: str, tmp_path: Path) -> None:
    for shape, nulls in [(s, n) for s in SHAPES for n in NULLS]:
        table = pa.table({"c": shaped(leaf, shape, nulls, null_structs=False)})
        uri = str(tmp_path / f"{shape}-{nulls}")
        try:
            esker.write_dataset(table, uri, data_storage_version="0.1", max_rows_per_group=512)
        except UnsupportedError:
            continue
        assert _difference(table, esker.dataset(uri).to_table()) is None, (shape, nulls)
        assert _difference(table, lance.dataset(uri).to_table()) is None, (shape, nulls)
