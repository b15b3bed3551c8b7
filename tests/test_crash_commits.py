"""Every store operation of every commit may be the last: the table is as before or as after, and goes on from there."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esker
from esker import LanceDataset, LanceOperation
from esker._native.store import Store
from esker.exceptions import AlreadyExistsError, EskerError
from esker.fragment import write_fragments
from esker.lance.log import LATEST_COPY
from esker.lance.operation import Index
from esker.store import stores
from tests.faulty import FAULTS, Faulty
from tests.leftovers import check_leftovers, leftovers
from tests.rounds import rounds

# They write no bytes: a full disk and a torn write are no matter to them.
READS = {"get", "get_ranges", "get_tail", "head", "list", "delete"}


def _ids(start: int, count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, start + count), pa.int64()), "t": ["x"] * count})


def _commit(operation: Callable[[str], LanceOperation.BaseOperation], **options: Any) -> Callable[[str, str], object]:
    """A commit of an operation that is prepared on the sound store."""

    def commit(uri: str, plan: str) -> object:
        prepared = operation(uri)
        version = esker.dataset(uri).version
        return LanceDataset.commit(
            f"fault://{uri}", prepared, read_version=version, storage_options={"plan": plan}, **options
        )

    return commit


def _call(change: Callable[[LanceDataset], object]) -> Callable[[str, str], object]:
    return lambda uri, plan: change(LanceDataset(f"fault://{uri}", storage_options={"plan": plan}))


def _deleted(uri: str) -> LanceOperation.BaseOperation:
    copy = f"{uri}-deleted"
    shutil.copytree(uri, copy)
    lance.dataset(copy).delete("id = 3 or id >= 20")
    for file in Path(copy, "_deletions").iterdir():
        Path(uri, "_deletions").mkdir(exist_ok=True)
        shutil.copy(file, Path(uri, "_deletions"))
    read = esker.dataset(copy).read_transaction(esker.dataset(copy).version)
    shutil.rmtree(copy)
    assert read is not None
    return read.operation


def _updated(uri: str) -> LanceOperation.BaseOperation:
    deleted = _deleted(uri)
    assert isinstance(deleted, LanceOperation.Delete)
    return LanceOperation.Update(
        list(deleted.deleted_fragment_ids), list(deleted.updated_fragments), write_fragments(_ids(70, 3), uri)
    )


def _rewritten(uri: str) -> LanceOperation.BaseOperation:
    old = [fragment.metadata for fragment in esker.dataset(uri).get_fragments()[:2]]
    return LanceOperation.Rewrite([LanceOperation.RewriteGroup(old, write_fragments(_ids(0, 20), uri))], [])


def _replaced(uri: str) -> LanceOperation.BaseOperation:
    new = write_fragments(pa.table({"id": list(range(500, 510)), "t": ["y"] * 10}), uri)[0]
    return LanceOperation.DataReplacement([LanceOperation.DataReplacementGroup(1, new.files[0])])


def _indexed(uri: str) -> LanceOperation.BaseOperation:
    index = Index("6c6a1c16-53b4-4dd4-a4ee-b9a2dd1b3ee0", "i", [0], 1, {0}, 0)
    return LanceOperation.CreateIndex([index], [])


KINDS: dict[str, Callable[[str, str], object]] = {
    "append": _commit(lambda uri: LanceOperation.Append(write_fragments(_ids(50, 5), uri))),
    "numbered append": _commit(
        lambda uri: LanceOperation.Append(write_fragments(_ids(50, 5), uri)), application=("a", 1)
    ),
    "delete": _commit(_deleted),
    "update": _commit(_updated),
    "rewrite": _commit(_rewritten),
    "data replacement": _commit(_replaced),
    "create index": _commit(_indexed),
    "reserve fragments": _commit(lambda uri: LanceOperation.ReserveFragments(2)),
    "overwrite": _commit(lambda uri: LanceOperation.Overwrite(_ids(0, 1).schema, write_fragments(_ids(9, 1), uri))),
    "restore": _call(lambda dataset: dataset.checkout_version(1).restore()),
    "update config": _call(lambda dataset: dataset.update_config({"k": "v"})),
    "new base paths": _call(lambda dataset: dataset.add_bases([esker.DatasetBasePath("/elsewhere", "e")])),
    "project": _call(lambda dataset: dataset.drop_columns(["t"])),
    "merge of nulls": _call(lambda dataset: dataset.add_columns(pa.field("n", pa.int8()))),
    "merge": _call(lambda dataset: dataset.add_columns({"twice": "id * 2"})),
    "cast": _call(lambda dataset: dataset.alter_columns({"path": "id", "data_type": pa.int32()})),
    "delete of rows": _call(lambda dataset: dataset.delete("id = 3 or id = 12 or id >= 20")),
    "truncate": _call(lambda dataset: dataset.truncate_table()),
    "update of rows": _call(lambda dataset: dataset.update({"t": "'y'"}, where="id = 3 or id = 12 or id >= 20")),
    "upsert": _call(
        lambda dataset: (
            dataset.merge_insert("id")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute(pa.table({"id": [3, 12, 80], "t": ["u"] * 3}))
        )
    ),
    "batch": lambda uri, plan: LanceDataset.commit_batch(
        f"fault://{uri}",
        [write_fragments(_ids(start, 2), uri, return_transaction=True) for start in (50, 60)],
        storage_options={"plan": plan},
    ),
}


def _prepare(uri: str, *, names: str = "V1") -> None:
    v2 = names == "V2"
    esker.write_dataset(_ids(0, 30), uri, max_rows_per_file=10, durable=False, enable_v2_manifest_paths=v2)
    esker.write_dataset(_ids(30, 5), uri, mode="append", durable=False)
    if not v2:
        shutil.copy(Path(uri, "_versions", "2.manifest"), Path(uri, LATEST_COPY))


def _state(uri: str) -> tuple[Any, ...]:
    dataset = esker.dataset(uri)
    rows = dataset.to_table()
    indices = [index.name for index in dataset._manifest.indices]
    assert rows.equals(lance.dataset(uri).to_table()) or indices
    highest = dataset._manifest.max_fragment_id
    return rows.schema, rows.to_pydict(), dataset.config(), indices, highest, dataset.base_paths()


def _try(kind: str, uri: str, plan: str) -> bool:
    try:
        KINDS[kind](uri, plan)
    except EskerError:
        return False
    return True


@pytest.mark.filterwarnings("ignore:version .* is committed, but what follows a commit failed")
@pytest.mark.parametrize("kind", list(KINDS))
def test_every_operation_of_a_commit_may_be_the_last(kind: str, faulty: Faulty, tmp_path: Path) -> None:
    seed, sound = str(tmp_path / "seed"), str(tmp_path / "sound")
    _prepare(seed)
    shutil.copytree(seed, sound)
    before = _state(sound)
    assert _try(kind, sound, "")
    after = _state(sound)
    assert before != after
    operations = faulty.made[-1].operations
    assert len(operations) >= 5, operations
    for number, verb, path in operations:
        for fault in FAULTS if verb not in READS else FAULTS[:4]:
            uri = str(tmp_path / f"{number}-{fault.replace(':', '-')}")
            shutil.copytree(seed, uri)
            reported = _try(kind, uri, f"{fault}@{number}")
            plan = f"plan {fault}@{number} ({verb} {path})"
            found = _state(uri)
            assert found == after or (found == before and not reported), plan
            assert esker.dataset(uri).version == (3 if found == after else 2), plan
            check_leftovers(uri)
            assert _state(uri) == found, plan
            # The next writer knows nothing of it all, and brings the copy of the manifest up to date.
            esker.dataset(uri).update_config({"next": "1"})
            version = lance.dataset(uri).version
            assert lance.dataset(uri).config()["next"] == "1", plan
            newest = Path(uri, "_versions", f"{version}.manifest").read_bytes()
            assert Path(uri, LATEST_COPY).read_bytes() == newest, plan
            shutil.rmtree(uri)


@pytest.mark.parametrize("is_shallow", [True, False], ids=["shallow", "deep"])
def test_a_clone_is_there_or_not(is_shallow: bool, faulty: Faulty, tmp_path: Path) -> None:
    source = str(tmp_path / "source")
    _prepare(source)
    esker.dataset(source).delete("id = 3")
    rows = esker.dataset(source).to_table()

    def clone(target: str, plan: str) -> None:
        dataset = esker.dataset(source)
        make = dataset.shallow_clone if is_shallow else dataset.deep_clone
        make(f"fault://{target}", 3, storage_options={"plan": plan})

    clone(str(tmp_path / "sound"), "")
    operations = [operation for made in faulty.made for operation in made.operations]
    assert len(operations) >= 4, operations
    for number, verb, path in operations:
        for fault in FAULTS if verb not in READS else FAULTS[:4]:
            target = str(tmp_path / f"{number}-{fault.replace(':', '-')}")
            try:
                clone(target, f"{fault}@{number}")
            except EskerError:
                # Nothing is in the way of another try, unless the first one was done.
                with suppress(AlreadyExistsError):
                    esker.dataset(source).shallow_clone(target, 3)
                assert fault != "lose_reply" or verb != "put_if_absent", f"{number} {path}"
            assert esker.dataset(target).version == 3, f"plan {fault}@{number} ({verb} {path})"
            assert esker.dataset(target).to_table() == lance.dataset(target).to_table() == rows
            esker.dataset(target).validate()
            shutil.rmtree(target)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_detached_commit_leaves_the_history_alone(fault: str, faulty: Faulty, tmp_path: Path) -> None:
    seed = str(tmp_path / "seed")
    _prepare(seed, names="V2")
    append = _commit(lambda uri: LanceOperation.Append(write_fragments(_ids(50, 5), uri)), detached=True)
    sound = str(tmp_path / "sound")
    shutil.copytree(seed, sound)
    append(sound, "")
    before = _state(seed)
    for number, verb, path in faulty.made[-1].operations:
        uri = str(tmp_path / str(number))
        shutil.copytree(seed, uri)
        with suppress(EskerError):
            append(uri, f"{fault}@{number}")
        assert _state(uri) == before, f"plan {fault}@{number} ({verb} {path})"
        check_leftovers(uri)


def _versions(uri: str) -> dict[int, pa.Table]:
    numbers = [ref["version"] for ref in esker.dataset(uri).version_refs()]
    return {number: esker.dataset(uri, version=number).to_table() for number in numbers}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_clean_up_may_stop_anywhere(fault: str, faulty: Faulty, tmp_path: Path) -> None:
    """A version is whole or gone, and the next clean-up goes on from there."""
    seed = str(tmp_path / "seed")
    _prepare(seed)
    esker.dataset(seed).delete("id = 3 or id = 12")
    esker.write_dataset(_ids(100, 5), seed, mode="overwrite")
    esker.dataset(seed, version=2).restore()
    Path(seed, "data", "lost.lance").write_bytes(b"x")
    before = _versions(seed)
    keep = {"retain_versions": 2, "delete_concurrency": 1}

    def clean(uri: str, plan: str) -> None:
        dataset = LanceDataset(f"fault://{uri}", storage_options={"plan": ""})
        dataset._table = replace(dataset._table, storage_options={"plan": plan})
        dataset.cleanup_old_versions(**keep)  # type: ignore[arg-type]

    sound = str(tmp_path / "sound")
    shutil.copytree(seed, sound)
    clean(sound, "")
    expected = {str(path.relative_to(sound)) for path in Path(sound).rglob("*") if path.is_file()}
    assert sorted(_versions(sound)) == [4, 5]
    operations = faulty.made[-1].operations
    assert len([verb for _, verb, _ in operations if verb == "delete"]) >= 8
    stopped = 0
    for number, verb, path in operations:
        uri = str(tmp_path / str(number))
        shutil.copytree(seed, uri)
        plan = f"{fault}@{number}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                clean(uri, plan)
        except EskerError:
            stopped += 1
        found = _versions(uri)
        assert found == {number: before[number] for number in found}, f"{plan} ({verb} {path})"
        assert {4, 5} <= set(found), f"{plan} ({verb} {path})"
        leftovers(Store(uri))
        # What a version referred to that is gone is nobody's by now, and young.
        esker.dataset(uri).cleanup_old_versions(**keep, delete_unverified=True)  # type: ignore[arg-type]
        there = {str(path.relative_to(uri)) for path in Path(uri).rglob("*") if path.is_file()}
        assert there == expected - {"data/lost.lance"}, f"{plan} ({verb} {path})"
        shutil.rmtree(uri)
    # A clean-up writes hardly anything that a full disk or a torn write could spoil.
    assert stopped > 0 or fault.startswith(("disk_full", "tear")), (
        f"expected {fault} to stop some clean-ups, found none"
    )


@settings(max_examples=rounds(30))
@given(
    seed=st.integers(0, 2**32),
    per_mille=st.sampled_from([30, 100, 300]),
    kinds=st.sampled_from(["crash", "lose_reply+fail+delay", "crash+lose_reply+fail+tear+disk_full+reorder+age"]),
    updates=st.booleans(),
    same_row=st.booleans(),
)
@pytest.mark.filterwarnings("ignore:version .* is committed, but what follows a commit failed")
def test_any_mixture_of_faults_leaves_a_change_of_rows_done_or_not(
    seed: int, per_mille: int, kinds: str, updates: bool, same_row: bool
) -> None:
    """A change that was computed before another one landed: it is merged with that, or computed again, or reported."""
    stores.register("fault", Faulty())
    uri = f"memory://rows-{seed}-{per_mille}-{kinds}-{updates}-{same_row}"
    Store(uri)
    for left in Store(uri).list():
        Store(uri).delete(left.path)
    esker.write_dataset(_ids(0, 12), uri, max_rows_per_file=5)
    stale = esker.dataset(uri)
    rival = "id in (2, 7)" if same_row else "id in (1, 8)"
    esker.dataset(uri).delete(rival)
    gone = {2, 7} if same_row else {1, 8}
    before = {n: "x" for n in range(12) if n not in gone}
    after = (
        {n: "new" if n in (2, 6, 7) else "x" for n in before}
        if updates
        else {n: "x" for n in before if n not in (2, 6, 7)}
    )
    faulty = LanceDataset(f"fault://{uri}", version=1, storage_options={"plan": ""})
    faulty._table = replace(faulty._table, storage_options={"plan": f"seed:{seed}:{per_mille}:{kinds}"})
    reported = True
    try:
        if updates:
            faulty.update({"t": "'new'"}, where="id in (2, 6, 7)")
        else:
            faulty.delete("id in (2, 6, 7)")
    except EskerError:
        reported = False
    found = {row["id"]: row["t"] for row in esker.dataset(uri).to_table().to_pylist()}
    assert found == after or (found == before and not reported)
    # The next writer knows nothing of it all.
    stale.delete("id = 11")
    rest = {row["id"]: row["t"] for row in esker.dataset(uri).to_table().to_pylist()}
    assert rest == {n: value for n, value in found.items() if n != 11}
