"""Every operation of a commit to an S3 server may be the last: the table is as before or as after, and goes on.

Some kinds of commits here. By hand all of them, and more faults: `ESKER_CRASH_S3=1 pytest` and this file.
"""

from __future__ import annotations

import os
import shutil
import warnings
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

import esker
from esker import LanceDataset
from esker._native.store import Store
from esker.exceptions import EskerError
from tests.faulty import Faulty
from tests.leftovers import leftovers, named
from tests.test_crash_commits import KINDS, READS, _ids, _prepare, _state, _try

EVERYTHING = "ESKER_CRASH_S3" in os.environ
LOCAL_ONLY = {"delete", "update"}
"""They are prepared by pylance in a folder; `delete of rows` and `update of rows` make the same commits."""
SOME = ["append", "delete of rows", "upsert", "restore", "update config", "batch"]
CHOSEN = [kind for kind in KINDS if kind not in LOCAL_ONLY] if EVERYTHING else SOME


def _upload(folder: str, uri: str) -> None:
    store = Store(uri)
    for path in Path(folder).rglob("*"):
        if path.is_file():
            store.put(str(path.relative_to(folder)), path.read_bytes())


def _download(uri: str, folder: Path) -> str:
    store = Store(uri)
    for path in store.list_paths():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(store.get(path))
    return str(folder)


def _faults(verb: str) -> list[str]:
    if EVERYTHING:
        return ["crash_before", "crash_after", "lose_reply", "fail"]
    # Before an operation is after the one before it.
    return ["crash_after"] if verb in READS else ["crash_after", "lose_reply"]


@pytest.mark.filterwarnings("ignore:version .* is committed, but what follows a commit failed")
@pytest.mark.parametrize("kind", CHOSEN)
def test_every_operation_of_a_commit_may_be_the_last(kind: str, faulty: Faulty, bucket: str, tmp_path: Path) -> None:
    seed = str(tmp_path / "seed")
    _prepare(seed)
    before = _state(seed)
    _upload(seed, f"{bucket}/sound")
    assert _try(kind, f"{bucket}/sound", "")
    after = _state(_download(f"{bucket}/sound", tmp_path / "sound"))
    assert before != after
    operations = faulty.made[-1].operations
    assert len(operations) >= 5, operations
    for number, verb, path in operations:
        for fault in _faults(verb):
            plan = f"plan {fault}@{number} ({verb} {path})"
            uri, copy = f"{bucket}/{number}-{fault}", tmp_path / f"{number}-{fault}"
            _upload(seed, uri)
            reported = _try(kind, uri, f"{fault}@{number}")
            found = _state(_download(uri, copy))
            assert found == after or (found == before and not reported), plan
            assert esker.dataset(uri).version == (3 if found == after else 2), plan
            assert named(esker.dataset(uri))[0] == leftovers(Store(uri)), plan
            # The next writer knows nothing of it all.
            esker.dataset(uri).update_config({"next": "1"})
            assert esker.dataset(uri).config()["next"] == "1", plan
            shutil.rmtree(copy)


def test_a_clean_up_may_stop_anywhere(faulty: Faulty, bucket: str, tmp_path: Path) -> None:
    seed = str(tmp_path / "seed")
    _prepare(seed)
    esker.dataset(seed).delete("id = 3 or id = 12")
    esker.write_dataset(_ids(100, 5), seed, mode="overwrite")
    rows = esker.dataset(seed).to_table()

    def clean(uri: str, plan: str) -> None:
        dataset = LanceDataset(f"fault://{uri}", storage_options={"plan": ""})
        dataset._table = replace(dataset._table, storage_options={"plan": plan})
        dataset.cleanup_old_versions(retain_versions=1, delete_concurrency=1)

    _upload(seed, f"{bucket}/sound")
    clean(f"{bucket}/sound", "")
    expected = Store(f"{bucket}/sound").list_paths()
    for number, verb, path in faulty.made[-1].operations:
        for fault in _faults(verb)[:1] if not EVERYTHING else _faults(verb):
            uri = f"{bucket}/{number}-{fault}"
            _upload(seed, uri)
            with suppress(EskerError), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                clean(uri, f"{fault}@{number}")
            plan = f"plan {fault}@{number} ({verb} {path})"
            assert esker.dataset(uri).to_table().equals(rows), plan
            for version in esker.dataset(uri).version_refs():
                esker.dataset(uri, version=version["version"]).to_table()
            esker.dataset(uri).cleanup_old_versions(retain_versions=1, delete_unverified=True)
            assert Store(uri).list_paths() == expected, plan


def test_a_table_is_there_or_not_wherever_its_first_writer_stops(faulty: Faulty, bucket: str) -> None:
    def create(uri: str, plan: str) -> None:
        esker.write_dataset(_ids(0, 6), f"fault://{uri}", max_rows_per_file=3, storage_options={"plan": plan})

    create(f"{bucket}/sound", "")
    for number, verb, path in faulty.made[-1].operations:
        uri, plan = f"{bucket}/created-{number}", f"plan crash_after@{number} ({verb} {path})"
        with suppress(EskerError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            create(uri, f"crash_after@{number}")
        written = esker.write_dataset(_ids(6, 6), uri, mode="append")
        assert written.count_rows() in (6, 12), plan
        assert written.version == written.count_rows() // 6, plan
        assert named(written)[0] == leftovers(Store(uri)), plan
