"""The names of lakeFS's Python SDK, with its arguments in its order, used as its guide uses them.

A program that was written for the SDK needs another `repository(...)` and nothing else, but for what
`docs/repositories.md` lists. The signatures below are those of lakeFS's `clients/python-wrapper` as of July 2026.
"""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from esker.exceptions import AlreadyExistsError, CommitConflictError, InvalidArgumentError, NotFoundError
from esker.repo import Branch, NoChangesError, Reference, Repository, StoredObject, Tag, WriteableObject, repository
from esker.repo.branch import TransactionBranch
from esker.repo.import_data import ImportManager

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
    StoredObject: {"reader": ["mode"], "stat": [], "exists": [], "copy": ["destination_branch_id", "destination_path"]},
    WriteableObject: {"upload": ["data", "mode"], "delete": [], "writer": ["mode"]},
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
    Reference.log: ["objects", "prefixes", "first_parent", "stop_at"],
    WriteableObject.upload: ["content_type", "metadata"],
    WriteableObject.writer: ["content_type", "metadata"],
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
            main.revert(**bad)  # type: ignore[arg-type]
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
