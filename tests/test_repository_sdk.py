"""The names of lakeFS's Python SDK, with its arguments in its order, used as its guide uses them.

A program that was written for the SDK needs another `repository(...)` and nothing else, but for what
`docs/repositories.md` lists. The signatures below are those of lakeFS's `clients/python-wrapper` as of July 2026.
"""

from __future__ import annotations

import inspect
import io
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from esker.exceptions import (
    AlreadyExistsError,
    CommitConflictError,
    EskerError,
    InvalidArgumentError,
    NotFoundError,
    UnsupportedError,
)
from esker.repo import (
    Branch,
    Change,
    CommonPrefix,
    ImportManager,
    NoChangesError,
    ObjectInfo,
    Reference,
    Repository,
    StoredObject,
    Tag,
    TransactionBranch,
    WriteableObject,
    exceptions,
    repositories,
    repository,
)

SIGNATURES = {
    Repository: {
        "delete": [],
        "branch": ["branch_id"],
        "commit": ["commit_id"],
        "ref": ["ref_id"],
        "tag": ["tag_id"],
        "branches": ["max_amount", "after", "prefix"],
        "tags": ["max_amount", "after", "prefix"],
    },
    Reference: {
        "objects": ["max_amount", "after", "prefix", "delimiter"],
        "log": ["max_amount"],
        "get_commit": [],
        "diff": ["other_ref", "max_amount", "after", "prefix", "delimiter"],
        "merge_into": ["destination_branch"],
        "object": ["path"],
    },
    Branch: {
        "uncommitted": ["max_amount", "after", "prefix"],
        "delete_objects": ["object_paths"],
        "reset_changes": ["path_type", "path"],
        "cherry_pick": ["reference", "parent_number"],
        "create": ["source_reference", "exist_ok"],
        "commit": ["message", "metadata"],
        "delete": [],
        "revert": ["reference", "parent_number"],
        "import_data": ["commit_message", "metadata"],
        "transact": ["commit_message", "commit_metadata", "delete_branch_on_error", "tag"],
    },
    Tag: {"create": ["source_ref", "exist_ok"], "delete": []},
    StoredObject: {
        "reader": ["mode", "pre_sign"],
        "stat": ["pre_sign"],
        "exists": [],
        "copy": ["destination_branch_id", "destination_path"],
    },
    WriteableObject: {
        "upload": ["data", "mode", "pre_sign", "content_type", "metadata"],
        "delete": [],
        "writer": ["mode", "pre_sign", "content_type", "metadata"],
    },
    ImportManager: {
        "prefix": ["object_store_uri", "destination"],
        "object": ["object_store_uri", "destination"],
        "start": [],
        "wait": ["poll_interval"],
        "run": ["poll_interval"],
        "cancel": [],
        "status": [],
    },
}
PROPERTIES = {
    Repository: ["metadata", "properties", "id"],
    Reference: ["repo_id", "id"],
    Branch: ["head"],
    StoredObject: ["repo", "ref", "path"],
    TransactionBranch: ["source_id", "commit_message", "commit_metadata", "tag"],
    ImportManager: ["import_id", "commit_message", "commit_metadata", "sources"],
}
KEYWORDS: dict[Callable[..., object], list[str]] = {
    Branch.commit: ["date", "allow_empty"],
    Branch.revert: ["reference_id"],
    Reference.merge_into: ["message", "metadata", "strategy", "squash_merge", "allow_empty", "force"],
    Reference.log: ["after", "amount", "objects", "prefixes", "limit", "first_parent", "since", "stop_at"],
    Reference.diff: ["type"],
    Repository.branches: ["show_hidden"],
    Branch.create: ["hidden"],
    Branch.uncommitted: ["delimiter"],
}


@pytest.mark.parametrize("kind", SIGNATURES, ids=lambda kind: kind.__name__)
def test_methods_take_the_arguments_in_the_order_of_the_sdk(kind: type) -> None:
    for name, expected in SIGNATURES[kind].items():
        parameters = list(inspect.signature(getattr(kind, name)).parameters.values())[1:]
        positional = [one.name for one in parameters if one.kind is not inspect.Parameter.KEYWORD_ONLY]
        assert positional[: len(expected)] == expected, name


def test_keywords_and_properties_have_the_names_of_the_sdk(lake: Repository) -> None:
    for function, names in KEYWORDS.items():
        assert set(names) <= set(inspect.signature(function).parameters), function
    main = lake.branch("main")
    with main.transact("nothing") as tx:
        things = [lake, lake.ref("main"), main, main.object("a"), tx, main.import_data()]
    for thing, names in zip(things, PROPERTIES.values(), strict=True):
        for name in names:
            assert hasattr(thing, name), name


@pytest.fixture
def lake(tmp_path: Path) -> Repository:
    return Repository.create(tmp_path / "lake", metadata={"team": "birds"})


def test_a_repository_tells_of_itself_and_goes(lake: Repository) -> None:
    assert lake.metadata == {"team": "birds"}
    found = lake.properties
    assert (found.id, found.default_branch, found.storage_namespace) == (lake.id, "main", lake.uri)
    assert found.creation_date is not None
    lake.branch("main").object("a").upload("1")
    lake.branch("main").commit("first")
    lake.delete()
    with pytest.raises(NotFoundError):
        repository(lake.uri)
    # As with lakeFS, the bytes stay.
    assert lake._core.store.list("data/")
    assert list(Repository.create(lake.uri).ref("main").objects()) == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_day_with_branches(lake: Repository) -> None:
    main = lake.branch("main")
    main.object("data/a.csv").upload(data="id\n1\n", content_type="text/csv", metadata={"k": "v"})
    first = main.commit(message="first", metadata={"job": "1"})
    assert isinstance(first, Reference)
    assert first.get_commit().metadata == {"job": "1"}
    dev = lake.branch("dev").create(source_reference="main")
    assert lake.branch("dev").create("main", exist_ok=True).id == "dev"
    with pytest.raises(AlreadyExistsError):
        lake.branch("dev").create("main")
    # A commit and a reference are refs too.
    lake.branch("by-commit").create(first.get_commit())
    lake.branch("by-reference").create(first)
    assert [branch.id for branch in lake.branches(1, "by-commit")] == ["by-reference"]
    assert [branch.id for branch in lake.branches(prefix="by-")] == ["by-commit", "by-reference"]
    with dev.object("data/b.csv").writer("w", metadata={"n": "1"}) as writer:
        writer.write("id\n2\n")
    assert [(change.type, change.path, change.path_type) for change in dev.uncommitted(10)] == [
        ("added", "data/b.csv", "object")
    ]
    dev.commit("second")
    assert [change.path for change in main.diff(dev)] == ["data/b.csv"]
    assert [change.path for change in main.diff(dev.head.id, 5, None, "data/", "/")] == ["data/b.csv"]
    assert [found.path for found in dev.objects(1, "data/a.csv", "data/")] == ["data/b.csv"]
    merged = dev.merge_into(main, message="merge", metadata={"why": "because"}, squash_merge=False)
    assert merged == main.get_commit().id == main.head.id
    assert [commit.message for commit in main.log(2)] == ["merge", "second"]
    picked = lake.branch("by-commit").cherry_pick(dev.head.id, None)
    assert picked.message == "second"
    reverted = main.revert("main", 1)
    assert reverted.message.startswith("Revert")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        main.revert(reference_id=reverted.id)
    assert warned[0].category is DeprecationWarning
    for bad in ({}, {"reference": "main", "reference_id": "main"}, {"reference": "main", "parent_number": -1}):
        with pytest.raises(ValueError, match="expected"):
            main.revert(**bad)
    tag = lake.tag("v1").create(main.get_commit())
    assert [found.id for found in lake.tags()] == ["v1"]
    next(lake.tags()).delete()
    with pytest.raises(NotFoundError):
        tag.get_commit()
    dev.delete()
    with pytest.raises(NotFoundError):
        lake.branch("dev").get_commit()


def test_objects_are_searched_copied_and_deleted_in_bulk(lake: Repository) -> None:
    main = lake.branch("main")
    for n in range(6):
        main.object(f"logs/{n}").upload(f"line one\nquick {n}\n")
    main.commit("logs")
    with lake.ref("main").object("logs/3").reader(mode="r") as reader:
        assert [line for line in reader if "quick" in line] == ["quick 3\n"]
    text = []
    size = main.object("logs/3").stat().size_bytes
    with main.object("logs/3").reader(mode="r") as reader:
        while reader.tell() < size:
            text.append(reader.read(2))
            reader.seek(2, os.SEEK_CUR)
    assert text == ["li", " o", "\nq", "ck", "\n"]
    copied = lake.ref("main").object("logs/0").copy("main", "copies/0")
    assert isinstance(copied, WriteableObject)
    assert copied.reader().read() == b"line one\nquick 0\n"
    main.delete_objects(found.path for found in main.objects(prefix="logs/") if found.path > "logs/1")
    main.delete_objects(main.object("logs/0"))
    main.delete_objects([main.object("logs/1"), "none"])
    assert [found.path for found in main.objects()] == ["copies/0"]
    main.reset_changes("object", "logs/1")
    main.reset_changes("common_prefix", "copies/")
    assert [found.path for found in main.objects()] == ["logs/1"]
    main.reset_changes()
    assert len(list(main.objects())) == 6
    assert not lake.ref("nowhere").object("a").exists()


def test_a_branch_with_and_without_what_is_staged(lake: Repository) -> None:
    lake.branch("main").object("a").upload("1")
    assert lake.ref("main$").object("a").exists()
    assert not lake.ref("main@").object("a").exists()
    with pytest.raises(InvalidArgumentError, match="staged"):
        lake.branch("dev").create("main$")


def test_a_transaction_is_told_things_until_it_ends(lake: Repository) -> None:
    main = lake.branch("main")
    with main.transact(commit_message="one", tag="t0") as tx:
        assert (tx.source_id, tx.commit_message, tx.tag) == ("main", "one", "t0")
        tx.object("a").upload("1")
        tx.commit_message, tx.commit_metadata, tx.tag = "two", {"k": "v"}, "t1"
    commit = lake.tag("t1").get_commit()
    assert (commit.message, commit.metadata, commit.id) == ("two", {"k": "v"}, main.get_commit().id)
    with suppress(KeyError), main.transact("never") as tx:
        tx.object("b").upload("1")
        raise KeyError
    assert not main.object("b").exists()


def test_an_import_runs_in_the_background_once(lake: Repository, tmp_path: Path) -> None:
    for n in range(3):
        (tmp_path / "out").mkdir(exist_ok=True)
        (tmp_path / f"out/{n}").write_text(str(n))
    main = lake.branch("main")
    manager = main.import_data(commit_message="imported", metadata={"k": "v"})
    with pytest.raises(InvalidArgumentError):
        manager.status()
    manager.prefix(f"{tmp_path}/out", "in/").object(f"{tmp_path}/out/0", "one")
    assert manager.start() == manager.import_id
    status = manager.wait()
    assert (status.completed, status.ingested_objects, status.error) == (True, 4, None)
    assert status.commit == main.get_commit()
    assert (status.commit_id, status.metarange_id) == (main.head.id, main.get_commit().meta_range_id)
    assert manager.status() == status
    with pytest.raises(InvalidArgumentError, match="started already"):
        manager.start()
    with pytest.raises(InvalidArgumentError, match="started already"):
        manager.object("x", "y")
    with pytest.raises(CommitConflictError):
        manager.cancel()
    with pytest.raises(NoChangesError):
        main.import_data().prefix(f"{tmp_path}/out", "in/").run()
    assert main.object("in/2").reader().read() == b"2"
    assert list(lake.fsck(imports=True)) == []
    (tmp_path / "out/2").write_text("longer")
    (finding,) = lake.fsck(imports=True)
    assert "'in/2' of the range" in finding


def test_files_of_objects_do_what_the_sdks_do(lake: Repository) -> None:
    target = lake.branch("main").object("a")
    for mode in ("w", "wb", "x", "xb"):
        writer = target.writer(mode)
        assert writer.writable()
        assert not writer.readable()
        # Text goes into files of bytes, and bytes into files of text.
        assert (writer.write("kör"), writer.write(b"!")) == (3 if "b" not in mode else 4, 1)
        assert writer.tell() == 5
        with pytest.raises(io.UnsupportedOperation):
            writer.seek(1)
        assert not target.exists()
        # What is known of the object may be said until the file is closed.
        writer.content_type, writer.metadata = "text/plain", {"mode": mode}
        writer.close()
        writer.close()
        for late in (lambda writer=writer: writer.write("x"), writer.flush):
            with pytest.raises(ValueError, match="closed file"):
                late()
        stat = target.stat()
        assert (stat.size_bytes, stat.content_type, stat.metadata) == (5, "text/plain", {"mode": mode})
        with pytest.raises(FileExistsError):
            target.writer("x")
        lake.branch("main").reset_changes()
    with pytest.raises(ValueError, match="expected the mode"):
        target.writer("a")  # type: ignore[arg-type]
    target.upload("0123456789", "w", False, None, {"k": "v"})
    # As lakeFS says it where nobody does: it is part of what makes two objects the same.
    assert target.stat(False).content_type == "application/octet-stream"
    for reader in (target.reader("rb", True), target.reader("r")):
        whole = b"0123456789" if reader.mode == "rb" else "0123456789"
        assert (reader.read(), reader.read(1)) == (whole, whole[:0])
        reader.seek(-4, os.SEEK_END)
        assert reader.read() == whole[6:]
        with pytest.raises(OSError, match="expected a place in the object"):
            reader.seek(-11, os.SEEK_CUR)
        assert reader.tell() == 10
        with pytest.raises((io.UnsupportedOperation, ValueError)):
            reader.seek(0, 10)
        reader.close()
        with pytest.raises(ValueError, match="closed file"):
            reader.read()
    with pytest.raises(UnsupportedError, match="not signed"):
        target.stat(pre_sign=True)


def test_changes_say_how_large_what_is_there_or_was_there_is(lake: Repository) -> None:
    main = lake.branch("main")
    for path in ("a", "b/1", "b/2"):
        main.object(path).upload(path)
    first = main.commit("first")
    main.delete_objects(["a", "b/1"])
    assert [(change.type, change.path, change.size_bytes) for change in main.uncommitted()] == [
        ("removed", "a", 0),
        ("removed", "b/1", 0),
    ]
    assert [(change.type, change.path, change.path_type) for change in main.uncommitted(delimiter="/")] == [
        ("removed", "a", "object"),
        ("prefix_changed", "b/", "common_prefix"),
    ]
    assert [change.path for change in main.uncommitted(1, "a", delimiter="/")] == ["b/"]
    main.commit("second")
    assert [(change.type, change.size_bytes) for change in first.diff(main)] == [("removed", 1), ("removed", 3)]


def test_a_history_is_cut_where_the_server_would_cut_it(lake: Repository) -> None:
    main = lake.branch("main")
    for n in range(6):
        main.object(f"p{n % 2}/{n}").upload(str(n))
        main.commit(f"c{n}", date=1_000_000_000 + n)

    def told(**options: object) -> list[str]:
        return [commit.message for commit in main.log(**options)]  # type: ignore[arg-type]

    assert told(amount=2) == told()
    assert told(amount=2, limit=True) == ["c5", "c4"]
    assert told(amount=4, limit=True, max_amount=3) == told(max_amount=3) == ["c5", "c4", "c3"]
    after = next(iter(main.log())).id
    assert told(after=after, max_amount=2) == ["c4", "c3"]
    assert told(after=after[:12], max_amount=2) == told(after="main", max_amount=2) == ["c4", "c3"]
    with pytest.raises(NotFoundError):
        told(after="nothing")
    assert told(since=datetime.fromtimestamp(1_000_000_003, UTC)) == ["c5", "c4"]
    assert told(stop_at="main~2") == ["c5", "c4", "c3"]
    assert told(stop_at="main~3", prefixes=["p0/"]) == ["c4", "c2"]
    assert told(objects=["p1/3", "p0/0"], max_amount=1) == ["c3"]
    assert told(objects=["p1/3", "p0/0"]) == ["c3", "c0"]
    assert told(prefixes=["p1/"], objects=["p0/4"], after=after) == ["c4", "c3", "c1"]
    assert lake.ref("main").merge_base("main~2") == lake.ref("main~2").get_commit()


def test_what_is_younger_than_a_time_is_told_beside_an_old_branch_that_was_merged(lake: Repository) -> None:
    main, dev = lake.branch("main"), lake.branch("dev").create("main")
    for n in range(4):
        dev.object(f"dev/{n}").upload(str(n))
        dev.commit(f"old {n}", date=1_000_000_000 + n)
    main.object("main").upload("1")
    main.commit("young", date=2_000_000_000)
    dev.merge_into("main", message="merge")
    since = datetime.fromtimestamp(1_500_000_000, UTC)
    # The first commit of the repository was made today.
    assert [commit.message for commit in main.log(since=since)] == ["merge", "young", "Repository created"]
    assert list(dev.log(since=since)) == []


def test_hidden_branches_are_not_listed_as_long_as_they_live(lake: Repository) -> None:
    hidden = lake.branch("hidden").create("main", hidden=True)
    hidden.object("a").upload("1")
    hidden.commit("first")
    lake.branch("dev").create(lake.ref(hidden.head))
    lake.pack_refs()
    assert [branch.id for branch in repository(lake.uri).branches()] == ["dev", "main"]
    assert [branch.id for branch in lake.branches(show_hidden=True)] == ["dev", "hidden", "main"]
    assert lake.ref("hidden").object("a").exists()
    assert lake.commit(hidden.get_commit()).get_commit() == hidden.get_commit()
    hidden.delete()
    lake.branch("hidden").create("main")
    assert [branch.id for branch in lake.branches()] == ["dev", "hidden", "main"]


@pytest.mark.parametrize("tag", ["a b", "v1/", "-v1", "ü", "a" * 256])
def test_a_transaction_whose_tag_cannot_be_created_commits_nothing(tag: str, tmp_path: Path) -> None:
    repo = Repository.create(tmp_path / "repo")
    before = repo.branch("main").get_commit()
    with pytest.raises(InvalidArgumentError, match="name of a tag"), repo.branch("main").transact("x", tag=tag) as tx:
        tx.object("a").upload("1")
    assert repo.branch("main").get_commit() == before


def test_a_tag_that_is_there_stays_and_no_transaction_is_committed_for_it(lake: Repository) -> None:
    main = lake.branch("main")
    tag = lake.tag("v1").create("main")
    before = main.get_commit()
    with pytest.raises(AlreadyExistsError, match="nothing was committed"), main.transact("x", tag="v1") as tx:
        tx.object("a").upload("1")
    assert main.get_commit() == before
    main.commit("empty", allow_empty=True)
    with pytest.raises(AlreadyExistsError):
        lake.tag("v1").create("main")
    assert lake.tag("v1").create("main", True).get_commit() == tag.get_commit() == before


def test_errors_go_by_the_names_of_the_sdk_too(lake: Repository) -> None:
    with pytest.raises(exceptions.NotFoundException):
        lake.branch("none").get_commit()
    with pytest.raises(exceptions.ObjectNotFoundException):
        lake.branch("main").object("none").stat()
    with pytest.raises(exceptions.ConflictException):
        lake.branch("main").create("main")
    with pytest.raises(exceptions.BadRequestException):
        lake.branch("main").commit("nothing")
    lake.branch("main").object("a").upload("1")
    with pytest.raises(exceptions.ObjectExistsException):
        lake.branch("main").object("a").upload("2", "x")
    with pytest.raises(exceptions.ImportManagerException):
        lake.branch("main").import_data().status()
    for name in exceptions.__all__:
        named = getattr(exceptions, name)
        assert all(issubclass(one, EskerError) for one in (named if isinstance(named, tuple) else (named,)))


def test_the_repositories_of_a_folder_are_listed(tmp_path: Path) -> None:
    for name in ("a", "b", "bc", "d"):
        Repository.create(tmp_path / name)
    (tmp_path / "c").mkdir()
    (tmp_path / "file").write_text("1")

    def names(*options: str | None) -> list[str]:
        return [Path(found.uri).name for found in repositories(tmp_path, *options)]

    assert names() == ["a", "b", "bc", "d"]
    assert (names("b"), names(None, "b"), names("b", "b")) == (["b", "bc"], ["bc", "d"], ["bc"])
    assert str(next(repositories(tmp_path))) == repository(tmp_path / "a").id


def test_a_branch_that_is_not_there_has_no_list_of_changes_either(lake: Repository) -> None:
    for listed in (lake.branch("nothing").uncommitted, lake.branch("nothing").objects, lake.branch("nothing").log):
        with pytest.raises(exceptions.NotFoundException):
            list(listed())
    assert list(lake.branch("main").uncommitted()) == []


@pytest.mark.parametrize("count", [1, 2, 3])
def test_pages_of_a_listing_with_a_delimiter_follow_each_other(count: int, lake: Repository) -> None:
    main = lake.branch("main")
    lake.branch("empty").create("main")
    paths = ("/x", "a", "a/1", "a/2", "a/b/1", "a0", "b\ud7ff1", "b/1", "c\U0010ffff", "c\U0010ffff1", "d/", "e//1")

    def pages(listed: Callable[..., Iterator[ObjectInfo | CommonPrefix | Change]], **asked: str) -> list[str]:
        seen: list[str] = []
        while page := [one.path for one in listed(count, seen[-1] if seen else None, **asked)]:
            assert len(seen) < 20
            seen += page
        return seen

    for path in paths:
        main.object(path).upload(path)
    asked: list[dict[str, Any]] = [
        *({"delimiter": delimiter} for delimiter in ("/", "\ud7ff", "\U0010ffff", "b/")),
        {"prefix": "a/", "delimiter": "/"},
        {"prefix": "a", "delimiter": "/"},
        {"delimiter": ""},
    ]
    staged = [pages(main.objects, **one) for one in asked]
    assert staged[0] == ["/", "a", "a/", "a0", "b/", "b\ud7ff1", "c\U0010ffff", "c\U0010ffff1", "d/", "e/"]
    assert staged == [[one.path for one in main.objects(**one)] for one in asked]
    assert staged == [pages(main.uncommitted, **one) for one in asked]
    main.commit("all")
    assert staged == [pages(lake.ref("main").objects, **one) for one in asked]
    main.object("b/2").upload("staged over it")
    assert staged[0] == pages(main.objects, delimiter="/")
