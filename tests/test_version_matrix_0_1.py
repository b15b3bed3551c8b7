"""The cells of the version matrix in version 0.1, which keeps few nulls: through tables, beside pylance.

What pylance makes of a cell in 0.1 is what we must read, nulls that turned into zeros and all.
"""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import esker
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
