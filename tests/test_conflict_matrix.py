"""Every cell of the conflict matrix, against what pylance does in the same situation, in both directions.

The same two operations are committed from the same version, once by pylance and once by esker, and then by one after
the other on one table. The operations touch the same fragment (index column, key) or different ones.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lance.fragment
import pyarrow as pa
import pytest
from lance.dataset import Index as PeerIndex

import esker
from esker.fragment import FragmentMetadata
from esker.lance.operation import Index
from esker.schema import LanceSchema

NAMES = [
    "Append",
    "Delete",
    "Overwrite",
    "CreateIndex",
    "Rewrite",
    "Merge",
    "Merge, no column required",
    "Restore",
    "Update",
    "Project",
    "Project, no column required",
    "UpdateConfig",
    "DataReplacement",
]

# Operations that are in the way of others depending on what they touch.
TWOFOLD = {"Delete", "CreateIndex", "Rewrite", "Update", "UpdateConfig", "DataReplacement"}


class Seed:
    """A table of 4 fragments, columns a, b, c in files of their own, and what operations on it need."""

    def __init__(self, folder: Path) -> None:
        self.uri = str(folder / "seed")
        rows = pa.table({"a": list(range(40))})
        dataset = lance.write_dataset(rows, self.uri, max_rows_per_file=10, data_storage_version="2.0")
        dataset.add_columns({"b": "a * 2"})
        dataset.add_columns({"c": "a * 3"})
        self.peer = lance.dataset(self.uri)
        self.version = self.peer.version
        self.deleted = [self.peer.get_fragment(number).delete(f"a = {number * 10 + 1}") for number in (0, 1)]
        self.new = lance.fragment.write_fragments(
            pa.table({"a": [1], "b": [2], "c": [3]}), self.uri, data_storage_version="2.0"
        )
        column = pa.table({"b": list(range(10))})
        self.file = lance.fragment.write_fragments(column, self.uri, mode="overwrite", data_storage_version="2.0")[0]
        self.ours = esker.dataset(self.uri)
        self.our_deleted = self._ours_of(self.deleted)
        self.our_new = esker.fragment.write_fragments(
            pa.table({"a": [1], "b": [2], "c": [3]}), self.uri, data_storage_version="2.0"
        )

    def _ours_of(self, deleted: list[Any]) -> list[FragmentMetadata]:
        """The same fragments of ours: as a commit by the peer has them."""
        copy = f"{self.uri}-deleted"
        shutil.copytree(self.uri, copy)
        operation = lance.LanceOperation.Delete(deleted, [], "x")
        lance.LanceDataset.commit(copy, operation, read_version=self.version)
        read = esker.dataset(copy).read_transaction(self.version + 1)
        assert read is not None
        assert isinstance(read.operation, esker.LanceOperation.Delete)
        return list(read.operation.updated_fragments)

    def theirs(self, name: str, same: bool) -> Any:
        """The operation of pylance."""
        op, number = lance.LanceOperation, 0 if same else 1
        metadata = [fragment.metadata for fragment in self.peer.get_fragments()]
        field = 1 if same else 2
        index = PeerIndex(str(uuid.uuid4()), "same" if same else "other", [field], 1, {0, 1, 2, 3}, 0)
        file = self.file.files[0]
        replaced = lance.fragment.DataFile(file.path, [field], [0], 2, 0, file.file_size_bytes)
        makers: dict[str, Callable[[], Any]] = {
            "Append": lambda: op.Append(self.new),
            "Delete": lambda: op.Delete([self.deleted[number]], [], "x"),
            "Overwrite": lambda: op.Overwrite(self.peer.schema, self.new),
            "CreateIndex": lambda: op.CreateIndex([index], []),
            "Rewrite": lambda: op.Rewrite([op.RewriteGroup([metadata[number]], self.new)], []),
            "Merge": lambda: op.Merge(metadata, self.peer.lance_schema),
            "Merge, no column required": lambda: op.Merge(metadata, self.peer.lance_schema, True),
            "Restore": lambda: op.Restore(self.version),
            "Update": lambda: op.Update([], [self.deleted[number]], self.new),
            "Project": lambda: op.Project(self.peer.lance_schema),
            "Project, no column required": lambda: op.Project(self.peer.lance_schema, True),
            "UpdateConfig": lambda: op.UpdateConfig(op.UpdateMap({"same" if same else "other": "1"})),
            "DataReplacement": lambda: op.DataReplacement([op.DataReplacementGroup(number, replaced)]),
        }
        return makers[name]()

    def ours_(self, name: str, same: bool) -> esker.LanceOperation.BaseOperation:
        """The same operation of esker."""
        op, number = esker.LanceOperation, 0 if same else 1
        metadata = [fragment.metadata for fragment in self.ours.get_fragments()]
        schema = LanceSchema(self.ours._manifest.schema)
        field = 1 if same else 2
        index = Index(str(uuid.uuid4()), "same" if same else "other", [field], 1, {0, 1, 2, 3}, 0)
        file = self.file.files[0]
        replaced = esker.fragment.DataFile(file.path, [field], [0], 2, 0, file.file_size_bytes)
        makers: dict[str, Callable[[], esker.LanceOperation.BaseOperation]] = {
            "Append": lambda: op.Append(self.our_new),
            "Delete": lambda: op.Delete([self.our_deleted[number]], [], "x"),
            "Overwrite": lambda: op.Overwrite(schema, self.our_new),
            "CreateIndex": lambda: op.CreateIndex([index], []),
            "Rewrite": lambda: op.Rewrite([op.RewriteGroup([metadata[number]], self.our_new)], []),
            "Merge": lambda: op.Merge(metadata, schema),
            "Merge, no column required": lambda: op.Merge(metadata, schema, True),
            "Restore": lambda: op.Restore(self.version),
            "Update": lambda: op.Update([], [self.our_deleted[number]], self.our_new),
            "Project": lambda: op.Project(schema),
            "Project, no column required": lambda: op.Project(schema, True),
            "UpdateConfig": lambda: op.UpdateConfig(op.UpdateMap({"same" if same else "other": "1"})),
            "DataReplacement": lambda: op.DataReplacement([op.DataReplacementGroup(number, replaced)]),
        }
        return makers[name]()


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Seed:
    return Seed(tmp_path_factory.mktemp("matrix"))


def _peer_commits(uri: str, operation: Any, version: int) -> str:
    try:
        lance.LanceDataset.commit(uri, operation, read_version=version)
    except OSError as error:
        return "retry" if "etryable" in str(error) else "incompatible"
    return "compatible"


def _we_commit(uri: str, operation: esker.LanceOperation.BaseOperation, version: int) -> str:
    try:
        esker.LanceDataset.commit(uri, operation, read_version=version, durable=False)
    except esker.exceptions.CommitConflictError as error:
        if (error.operation, error.version, error.other_version) != (operation.name, version, version + 1):
            raise
        return "retry" if error.retryable else "incompatible"
    return "compatible"


@pytest.mark.parametrize("theirs", NAMES)
@pytest.mark.parametrize("ours", NAMES)
def test_a_cell_is_what_the_peer_does(ours: str, theirs: str, seed: Seed, tmp_path: Path) -> None:
    both = [("peer", "peer"), ("peer", "we"), ("we", "peer"), ("we", "we")]
    for same in (True, False) if theirs in TWOFOLD else (True,):
        verdicts = []
        for who, (first, second) in enumerate(both if same else both[::3]):
            uri = str(tmp_path / f"{same}{who}")
            shutil.copytree(seed.uri, uri)
            if first == "peer":
                assert _peer_commits(uri, seed.theirs(theirs, same), seed.version) == "compatible"
            else:
                assert _we_commit(uri, seed.ours_(theirs, same), seed.version) == "compatible"
            if second == "peer":
                verdicts.append(_peer_commits(uri, seed.theirs(ours, True), seed.version))
            else:
                verdicts.append(_we_commit(uri, seed.ours_(ours, True), seed.version))
            # What came of it reads the same by both.
            expected = lance.dataset(uri)
            assert esker.dataset(uri).version == expected.version
            assert esker.dataset(uri).schema.names == expected.schema.names
            if not (theirs == "CreateIndex" or ours == "CreateIndex" or "DataReplacement" in (ours, theirs)):
                assert esker.dataset(uri).to_table().equals(expected.to_table())
            shutil.rmtree(uri)
        assert len(set(verdicts)) == 1, f"{ours} after {theirs}, same={same}: {verdicts}"
