"""Versions: listed, opened, gone back to; names of manifests; transactions and what their writers noted on them."""

from __future__ import annotations

import copy
import os
import pickle
from datetime import date, datetime, timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import esker
from esker.exceptions import CorruptFileError, InvalidArgumentError, NotFoundError
from tests.samples import people, same


@pytest.fixture
def three(uri: str) -> str:
    """A table of three versions: 10 rows, 30 rows, 5 other rows."""
    esker.write_dataset(people(10), uri)
    esker.write_dataset(people(20, start=10), uri, mode="append")
    esker.write_dataset(people(5, start=100), uri, mode="overwrite")
    return uri


def test_versions_are_those_that_pylance_lists(three: str) -> None:
    # pylance's own `versions` takes these nanoseconds through a float, which may cost the last microsecond.
    theirs = lance.dataset(three)._ds.versions()
    for version in theirs:
        seconds, nanoseconds = divmod(int(version["timestamp"]), 10**9)
        version["timestamp"] = datetime.fromtimestamp(seconds) + timedelta(microseconds=nanoseconds // 1000)
    ours = esker.dataset(three).versions()
    assert [version["version"] for version in ours] == [1, 2, 3]
    assert ours == theirs


def test_each_version_shows_its_own_rows(three: str) -> None:
    for number, rows in ((1, 10), (2, 30), (3, 5)):
        opened = esker.dataset(three, version=number)
        assert (opened.version, opened.count_rows()) == (number, rows)
        same(lance.dataset(three, version=number).to_table(), opened.to_table())


def test_checkout_moves_between_versions_and_leaves_the_dataset_alone(three: str) -> None:
    dataset = esker.dataset(three)
    first = dataset.checkout_version(1)
    assert (first.version, dataset.version, first.latest_version) == (1, 3, 3)
    first.checkout_latest()
    assert first.version == 3
    assert [ref["version"] for ref in dataset.version_refs()] == [1, 2, 3]


def test_a_pinned_dataset_does_not_see_later_commits(three: str) -> None:
    dataset = esker.dataset(three)
    esker.write_dataset(people(7, start=500), three, mode="append")
    assert (dataset.count_rows(), dataset.to_table().num_rows, dataset.latest_version) == (5, 5, 4)


def test_asof_opens_the_last_version_before_a_time(three: str) -> None:
    times = [version["timestamp"] for version in esker.dataset(three).versions()]
    assert esker.dataset(three, asof=times[1]).version == 1
    assert esker.dataset(three, asof=str(times[2] + timedelta(seconds=1))).version == 3
    assert esker.dataset(three, asof=(times[1] + timedelta(microseconds=1)).astimezone()).version == 2
    with pytest.raises(NotFoundError, match="earlier"):
        esker.dataset(three, asof=datetime(2000, 1, 1))


def test_a_date_is_no_time_of_a_version(three: str) -> None:
    for module in (esker, lance):
        for asof in (date(2050, 1, 1), 3):
            with pytest.raises(TypeError, match=type(asof).__name__):
                module.dataset(three, asof=asof)


def test_v1_tables_stay_v1_and_are_read_by_pylance(uri: str) -> None:
    lance.write_dataset(people(3), uri, data_storage_version="2.0", enable_v2_manifest_paths=False)
    esker.write_dataset(people(4, start=3), uri, mode="append")
    assert sorted(name for name in os.listdir(f"{uri}/_versions") if name.endswith(".manifest")) == [
        "1.manifest",
        "2.manifest",
    ]
    same(people(7), lance.dataset(uri).to_table())
    own = uri + "-own"
    esker.write_dataset(people(3), own, enable_v2_manifest_paths=False)
    assert esker.write_dataset(people(4, start=3), own, mode="append").version == 2
    assert lance.dataset(own).count_rows() == 7


def test_a_mixture_of_manifest_names_is_refused(uri: str) -> None:
    esker.write_dataset(people(3), uri)
    folder = Path(uri, "_versions")
    manifest = next(folder.glob("*.manifest"))
    (folder / "2.manifest").write_bytes(manifest.read_bytes())
    with pytest.raises(CorruptFileError, match="mixes V1 and V2"):
        esker.dataset(uri)
    with pytest.raises(CorruptFileError, match="mixes V1 and V2"):
        esker.write_dataset(people(3), uri, mode="append")


def test_other_files_among_the_manifests_are_passed_over(three: str) -> None:
    folder = Path(three, "_versions")
    (folder / ".manifest-8d2c").write_bytes(b"staged")
    (folder / "latest_version_hint.json").write_text('{"version":1}')
    (folder / "d9223372036854775809.manifest").write_bytes(b"detached")
    assert esker.dataset(three).version == 3


def test_commit_messages_and_properties_are_read_back_by_both(uri: str) -> None:
    properties = {"job": "42"}
    dataset = esker.write_dataset(people(3), uri, commit_message="first", transaction_properties=properties)
    expected = {"job": "42", "__lance_commit_message": "first"}
    transaction = dataset.read_transaction(1)
    assert transaction is not None
    assert transaction.transaction_properties == expected
    assert isinstance(transaction.operation, esker.LanceOperation.Overwrite)
    assert lance.dataset(uri).read_transaction(1).transaction_properties == expected


def test_transactions_of_pylance_are_read(uri: str) -> None:
    lance.write_dataset(people(3), uri, data_storage_version="2.0", commit_message="peer")
    lance.write_dataset(people(3), uri, mode="append", transaction_properties={"n": "1"})
    lance.dataset(uri).delete("id = 1")
    found = esker.dataset(uri).get_transactions()
    assert [type(item.operation).__name__ for item in found if item] == ["Delete", "Append", "Overwrite"]
    assert found[1] is not None
    assert found[1].transaction_properties == {"n": "1"}
    assert esker.dataset(uri).find_transaction("n", "1") == 2
    assert esker.dataset(uri).find_transaction("n", "1", after=2) is None


def test_a_transaction_is_found_inline_when_its_file_is_gone(uri: str) -> None:
    lance.write_dataset(people(3), uri, data_storage_version="2.0", commit_message="inline")
    for path in Path(uri, "_transactions").iterdir():
        path.unlink()
    transaction = esker.dataset(uri).read_transaction(1)
    assert transaction is not None
    assert transaction.transaction_properties == {"__lance_commit_message": "inline"}


def test_pickled_datasets_stay_at_their_version(three: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(Path(three).parent)
    relative = esker.dataset(Path(three).name, version=2)
    data = pickle.dumps((relative, relative.get_fragments()[1]))
    monkeypatch.chdir(tmp_path.parent)
    dataset, fragment = pickle.loads(data)
    assert (dataset.version, dataset.count_rows(), fragment.count_rows()) == (2, 30, 20)
    same(people(30), dataset.to_table())


def test_pylance_goes_on_where_esker_stopped(three: str) -> None:
    lance.write_dataset(people(2, start=900), three, mode="append")
    lance.dataset(three).delete("id = 100")
    dataset = esker.write_dataset(people(1, start=950), three, mode="append")
    assert dataset.version == 6
    assert dataset.to_table(columns=["id"])["id"].to_pylist() == [101, 102, 103, 104, 900, 901, 950]
    same(lance.dataset(three).to_table(), dataset.to_table())


def test_what_is_no_reference_to_a_version_is_refused(three: str) -> None:
    for wrong in (1.0, True, ("main",), ("main", "3"), b"stable"):
        with pytest.raises(InvalidArgumentError, match="expected a"):
            esker.dataset(three, version=wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match="expected a"):
            esker.dataset(three).checkout_version(wrong)  # type: ignore[arg-type]


def test_schema_of_a_version_is_its_own(uri: str) -> None:
    esker.write_dataset(people(3), uri)
    other = pa.table({"x": [1]})
    esker.write_dataset(other, uri, mode="overwrite")
    assert esker.dataset(uri, version=1).schema == people(0).schema
    assert esker.dataset(uri).schema == other.schema


def test_a_subclass_with_arguments_of_its_own_opens_other_versions_and_clones(three: str, tmp_path: Path) -> None:
    class Labelled(esker.LanceDataset):
        def __init__(self, uri: str, label: str) -> None:
            super().__init__(uri)
            self.label = label

    ours = Labelled(three, "a")
    others = [ours.checkout_version(1), copy.copy(ours), ours.shallow_clone(tmp_path / "clone.lance", 3)]
    # As in pylance: nobody called the subclass's own __init__ for them.
    assert {type(other) for other in others} == {esker.LanceDataset}
    assert [other.count_rows() for other in others] == [10, 5, 5]
    ours.checkout_latest()
    assert (type(ours), ours.label) == (Labelled, "a")
