"""Progress: whatever takes its time reports in one form, and users are told in the form that they asked for."""

from __future__ import annotations

import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import esker
from esker.cli import main
from esker.delta import write_deltalake
from esker.fragment import write_fragments
from esker.progress import Done, FragmentWriteProgress, Tally, as_progress
from esker.repo import Repository
from tests.samples import people


class Seen:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.reports: list[Done] = []

    def report(self, done: Done) -> None:
        self.reports.append(done)

    def steps(self) -> list[str]:
        return list(dict.fromkeys(done.step for done in self.reports))

    def last(self, step: str) -> Done:
        return [done for done in self.reports if done.step == step][-1]


def test_a_write_tells_of_rows_and_then_of_files(uri: str) -> None:
    seen = Seen()
    made = esker.write_dataset(people(1000).to_reader(max_chunksize=300), uri, max_rows_per_file=400, progress=seen)
    assert seen.steps() == ["writing rows", "writing files"]
    rows = [done for done in seen.reports if done.step == "writing rows"]
    assert [done.rows for done in rows] == [300, 600, 900, 1000]
    assert [done.bytes for done in rows] == sorted(done.bytes for done in rows)
    files = [done for done in seen.reports if done.step == "writing files"]
    assert [(done.count, done.total, len(done.fragments)) for done in files] == [(1, 3, 1), (2, 3, 1), (3, 3, 1)]
    assert files[-1].rows == 1000
    sizes = [file.stat().st_size for file in Path(made.uri, "data").iterdir()]
    assert files[-1].bytes == sum(sizes)


def test_fragments_that_are_not_committed_are_told_of_too(uri: str) -> None:
    seen = Seen()
    write_fragments(people(10), uri, mode="create", progress=seen)
    assert seen.last("writing files").files == 1


def test_who_is_told_of_fragments_and_can_be_called_gets_both(uri: str) -> None:
    class Both(FragmentWriteProgress):
        told: list[Any]

        def __init__(self) -> None:
            self.told = []

        def __call__(self, rows: int) -> None:
            self.told.append(rows)

        def begin(self, fragment: Any, **kwargs: Any) -> None:
            self.told.append("begin")

        def complete(self, fragment: Any, **kwargs: Any) -> None:
            self.told.append("complete")

    both = Both()
    esker.write_dataset(people(10), uri, progress=both)
    assert both.told == [10, "begin", "complete"]


def test_a_scan_tells_of_rows_and_their_bytes(uri: str) -> None:
    dataset, seen = esker.write_dataset(people(100), uri), Seen()
    dataset.to_table(columns=["id"], batch_size=40, progress=seen)
    assert [(done.rows, done.bytes) for done in seen.reports] == [(40, 320), (80, 640), (100, 800)]


def test_an_upsert_tells_of_its_source_and_of_what_it_wrote(uri: str) -> None:
    dataset, seen = esker.write_dataset(people(10), uri), Seen()
    rows = people(10, start=5)
    upsert = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    upsert.execute(rows.to_reader(max_chunksize=4), progress=seen)
    assert seen.steps() == ["reading rows to merge", "merging rows"]
    assert seen.last("reading rows to merge").rows == 10
    merged = seen.last("merging rows")
    assert (merged.rows, merged.files > 0, merged.bytes > 0) == (10, True, True)
    counts: list[int] = []
    dataset.merge_insert("id").when_matched_update_all().execute(rows, progress=counts.append)
    assert counts == [10]


def test_a_clean_up_tells_of_the_files_that_are_gone(uri: str) -> None:
    for _ in range(3):
        dataset = esker.write_dataset(people(10), uri, mode="overwrite")
    seen = Seen()
    gone = dataset.cleanup_old_versions(timedelta(0), progress=seen)
    last = seen.last("removing files")
    assert last.count == last.total == gone.data_files_removed + gone.transaction_files_removed
    assert last.bytes < gone.bytes_removed, "manifests come first, and are counted there"


def test_a_delta_write_tells_of_rows_and_files(tmp_path: Path) -> None:
    seen, counts = Seen(), list[int]()
    rows = people(1000).select(["id", "name"])
    write_deltalake(tmp_path / "d", rows.to_reader(max_chunksize=300), progress=seen)
    assert [done.rows for done in seen.reports if done.step == "writing rows"] == [300, 600, 900, 1000]
    files = seen.last("writing files")
    sizes = [path.stat().st_size for path in (tmp_path / "d").glob("*.parquet")]
    assert (files.rows, files.files, files.bytes) == (1000, len(sizes), sum(sizes))
    write_deltalake(tmp_path / "d", rows, mode="append", progress=counts.append)
    assert counts[-1] == 1000


def test_garbage_collections_and_checks_tell_of_their_steps(tmp_path: Path) -> None:
    repository = Repository.create(str(tmp_path / "r"))
    main_branch = repository.branch("main")
    for number in range(2):
        main_branch.object(f"{number}.txt").upload("hello")
        main_branch.commit("more")
    seen, steps = Seen(), list[tuple[str, int, int | None]]()
    repository.gc(progress=seen)
    repository.gc(progress=lambda step, count, total: steps.append((step, count, total)))
    told = [(done.step, done.count, done.total) for done in seen.reports]
    assert told == steps
    assert told[-1] == ("marking what commits lead to", 2, 3)
    assert list(repository.fsck(progress=seen)) == []
    assert seen.last("checking what commits hold").total == 3


def test_an_error_of_the_watcher_ends_the_work_and_comes_back_as_it_is(uri: str) -> None:
    def refuse(rows: int) -> None:
        raise KeyError("enough")

    class Refuses:
        def report(self, done: Done) -> None:
            refuse(done.rows)

    for watcher in (refuse, Refuses()):
        with pytest.raises(KeyError, match="enough"):
            esker.write_dataset(people(10), uri, progress=watcher)
    with pytest.raises(esker.exceptions.NotFoundError):
        esker.dataset(uri)


def test_what_cannot_be_told_anything_is_refused(uri: str) -> None:
    with pytest.raises(TypeError, match="to have begin and complete, or report, found int"):
        esker.write_dataset(people(1), uri, progress=7)  # type: ignore[arg-type]
    assert as_progress(None) is None


def test_a_tally_loses_nothing_between_threads() -> None:
    seen = Seen()
    tally = Tally(seen, "counting", unit="files", total=400)

    def count() -> None:
        for _ in range(100):
            tally.add(files=1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [done.files for done in seen.reports] == list(range(1, 401))


def test_commands_draw_on_a_terminal(uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    for _ in range(2):
        esker.write_dataset(people(25), uri, mode="overwrite")
    repository, files = str(tmp_path / "r"), tmp_path / "files"
    Repository.create(repository)
    files.mkdir()
    for number in range(3):
        (files / f"{number}.txt").write_text("hello")
    commands = [
        ["versions", uri],
        ["head", uri],
        ["count", uri, "--filter", "id > 3"],
        ["cleanup", uri, "--older-than", "0s"],
        ["repo", "put", repository, "main", "below/", str(files)],
        ["repo", "import", repository, "main", str(files), "imported/"],
        ["repo", "gc", repository],
        ["repo", "fsck", repository],
    ]
    for command in commands:
        assert main(command) == 0, command
    assert len(list(Repository(repository).ref("main").objects())) == 6
    assert main(["repo", "import", repository, "main", str(tmp_path / "none"), "x/"]) == 1
