"""Tags: names of versions, in turns with pylance on one table, and beside a clean-up that removes what they name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.exceptions import (
    CommitStateUnknownError,
    CorruptFileError,
    InvalidArgumentError,
    InvalidRefError,
    IOFailedError,
    NotFoundError,
    RefConflictError,
)
from esker.store import stores
from tests.tree_branches import Watch, meanwhile
from tests.watched_stores import in_another_thread


@pytest.fixture
def three(uri: str) -> str:
    """A table of three versions with 1, 2 and 3 rows."""
    for number in range(3):
        esker.write_dataset(pa.table({"id": [number]}), uri, mode="append" if number else "create")
    return uri


WRONG = ["", ".a", "a.", "a..b", "a.lock", "a/b", "a b", "a\\b", "a@{b", "../a", "a*", "/a", "~"]


@pytest.fixture
def watched() -> Iterator[dict[str, Watch]]:
    """`watched["f"]` sees each operation of `fault://` stores, and may name a fault."""
    found: dict[str, Watch] = {}

    def make(uri: str, options: Any, durable: bool) -> Store:
        inner = Store(uri.removeprefix("fault://"), durable=False)
        return FaultStore(inner, watch=lambda verb, path: found["f"](verb, path) if "f" in found else None).store

    stores.register("fault", make)
    yield found
    del stores._factories["fault"]


def _refs(uri: str) -> dict[str, Any]:
    return {path.name: json.loads(path.read_bytes()) for path in Path(uri, "_refs/tags").iterdir()}


def test_both_libraries_use_each_others_tags(three: str) -> None:
    ours, theirs = esker.dataset(three), lance.dataset(three)
    ours.tags.create("first", 1)
    theirs.tags.create("second", 2)
    ours.tags.create("now")
    ours.tags.create("alias", "second")
    theirs.tags.create("latest", (None, None))
    ours.tags.create("latest-of-main", ("main", None))
    assert ours.tags.list() == theirs.tags.list()
    for order in (None, "asc", "desc"):
        assert ours.tags.list_ordered(order) == theirs.tags.list_ordered(order)
    for name, version in {"first": 1, "second": 2, "now": 3, "alias": 2, "latest": 3, "latest-of-main": 3}.items():
        assert ours.tags.get_version(name) == theirs.tags.get_version(name) == version
        assert esker.dataset(three, version=name).version == lance.dataset(three, version=name).version == version
        assert ours.checkout_version(name).to_table() == theirs.checkout_version(name).to_table()
    ours.tags.update("first", 3)
    theirs.tags.update("second", 1)
    ours.tags.update("now", "second")
    ours.tags.replace_metadata("latest", {"by": "us"})
    theirs.tags.replace_metadata("latest-of-main", {"by": "them"})
    assert ours.tags.list() == theirs.tags.list()
    assert ours.tags.list()["latest"]["metadata"] == {"by": "us"}
    ours.tags.delete("latest")
    theirs.tags.delete("first")
    assert set(ours.tags.list()) == set(theirs.tags.list()) == {"second", "now", "alias", "latest-of-main"}
    assert ours.tags.list()["now"]["version"] == 1


def test_a_tag_is_written_as_pylance_writes_it(three: str) -> None:
    esker.dataset(three).tags.create("ours", 2)
    lance.dataset(three).tags.create("theirs", 2)
    found = _refs(three)
    assert list(found["ours.json"]) == list(found["theirs.json"])
    texts = [Path(three, "_refs/tags", name).read_text() for name in ("ours.json", "theirs.json")]
    for tag in found.values():
        for moment in (tag["createdAt"], tag["updatedAt"]):
            texts = [text.replace(moment, "T") for text in texts]
    assert texts[0] == texts[1]


def test_an_update_moves_a_tag_and_keeps_what_else_is_known_of_it(three: str) -> None:
    tags = esker.dataset(three).tags
    tags.create("a", 1)
    tags.replace_metadata("a", {"k": "v"})
    path = Path(three, "_refs/tags/a.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "ofANewerWriter": [1]}))
    before = tags.list()["a"]
    tags.update("a", 3)
    after = tags.list()["a"]
    assert (after["version"], after["metadata"], after["created_at"]) == (3, {"k": "v"}, before["created_at"])
    assert (after["updated_at"] or 0) > (before["updated_at"] or 0)  # type: ignore[operator]
    assert json.loads(path.read_text())["ofANewerWriter"] == [1]
    assert after["manifest_size"] == lance.dataset(three).tags.list()["a"]["manifest_size"]


def test_tags_of_early_writers_are_read(three: str) -> None:
    lance.dataset(three).tags.create("a", 1)
    Path(three, "_refs/tags/a.json").write_text('{"branch":null,"version":2,"manifestSize":1}')
    ours = esker.dataset(three).tags
    assert ours.list() == lance.dataset(three).tags.list()
    assert ours.list()["a"]["created_at"] is None
    ours.update("a", 3)
    assert ours.list() == lance.dataset(three).tags.list()
    assert "createdAt" not in _refs(three)["a.json"]


@pytest.mark.parametrize(
    "name", ["", ".a", "a.", "a..b", "a.lock", "a/b", "a b", "a\\b", "a@{b", "../a", "a*", "/a", "~"]
)
def test_names_that_no_tag_can_have_are_refused_as_by_pylance(three: str, name: str) -> None:
    for library in (esker, lance):
        tags = library.dataset(three).tags
        with pytest.raises(OSError, match="Ref is invalid: Ref"):
            tags.create(name, 1)
    for call in (tags.delete, tags.get_version):
        with pytest.raises((OSError, ValueError)):
            call(name)
    assert esker.dataset(three).tags.list() == {}


def test_letters_of_other_alphabets_are_refused_since_pylance_cannot_list_such_tags(three: str) -> None:
    with pytest.raises(InvalidRefError, match="alphanumeric"):
        esker.dataset(three).tags.create("é", 1)
    lance.dataset(three).tags.create("é", 1)
    with pytest.raises(ValueError, match="Not found"):
        lance.dataset(three).tags.list()


def test_errors_are_those_of_pylance(three: str) -> None:
    for library in (esker, lance):
        dataset = library.dataset(three)
        name = library.__name__
        dataset.tags.create(name, 1)
        with pytest.raises(ValueError, match=f"Ref conflict error: tag {name} already exists"):
            dataset.tags.create(name, 2)
        with pytest.raises(ValueError, match="Version not found error: version main:9 does not exist"):
            dataset.tags.create("b", 9)
        with pytest.raises(ValueError, match="Version not found error: version main:9 does not exist"):
            dataset.tags.update(name, 9)
        with pytest.raises(OSError, match="Ref not found error: tag b does not exist"):
            dataset.tags.create("c", "b")
        calls: list[Callable[[], object]] = [
            lambda: dataset.tags.get_version("b"),  # noqa: B023
            lambda: dataset.tags.delete("b"),  # noqa: B023
            lambda: dataset.tags.update("b", 1),  # noqa: B023
            lambda: dataset.tags.replace_metadata("b", {}),  # noqa: B023
            lambda: library.dataset(three, version="b"),  # noqa: B023
        ]
        for call in calls:
            with pytest.raises(ValueError, match="Ref not found error: tag b does not exist"):
                call()
        with pytest.raises(OSError, match="Ref not found error: tag b does not exist"):
            dataset.checkout_version("b")
        with pytest.raises(ValueError, match="Invalid sort order 'x'. Valid values are: asc, desc"):
            dataset.tags.list_ordered("x")
    assert set(esker.dataset(three).tags.list()) == {"esker", "lance"}
    assert esker.dataset(three).tags.list()["esker"]["version"] == 1


def test_wrong_arguments_are_refused_before_anything_is_written(three: str) -> None:
    tags = esker.dataset(three).tags
    with pytest.raises(InvalidArgumentError, match="expected a version as int, a tag as str"):
        tags.create("a", 1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="name of a branch as str"):
        tags.create("a", (1, 2))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="name of a tag as str"):
        tags.create(1, 2)  # type: ignore[arg-type]
    tags.create("a", 1)
    with pytest.raises(TypeError, match="metadata as str"):
        tags.replace_metadata("a", {"k": 1})  # type: ignore[dict-item]
    assert list(_refs(three)) == ["a.json"]


def test_a_tag_that_cannot_be_read_is_named_and_can_be_deleted(three: str) -> None:
    tags = esker.dataset(three).tags
    tags.create("a", 1)
    Path(three, "_refs/tags/a.json").write_text('{"version": "one"}')
    for call in (tags.list, lambda: tags.get_version("a"), lambda: esker.dataset(three, version="a")):
        with pytest.raises(CorruptFileError, match=r"_refs/tags/a.json: expected JSON with a version"):
            call()
    tags.delete("a")
    assert tags.list() == {}


def test_of_two_writers_of_one_tag_one_wins(three: str, watched: dict[str, Watch]) -> None:
    done: list[int] = []

    def other(verb: str, path: str) -> None:
        if verb == "put_if_absent" and "_refs/" in path and not done:
            done.append(1)
            in_another_thread(lambda: lance.dataset(three).tags.create("a", 2))

    watched["f"] = other
    with pytest.raises(RefConflictError, match="tag a already exists"):
        esker.dataset(f"fault://{three}").tags.create("a", 1)
    assert esker.dataset(three).tags.get_version("a") == 2


@pytest.mark.parametrize("fault", ["lose_reply", "fail"])
def test_a_lost_reply_is_looked_up(three: str, watched: dict[str, Watch], fault: str) -> None:
    watched["f"] = lambda verb, path: fault if verb == "put_if_absent" and "_refs/" in path else None
    tags = esker.dataset(f"fault://{three}").tags
    if fault == "lose_reply":
        tags.create("a", 1)
        assert tags.get_version("a") == 1
    else:
        with pytest.raises(IOFailedError):
            tags.create("a", 1)
        assert tags.list() == {}


def test_a_put_over_a_network_may_land_after_its_error(
    three: str, watched: dict[str, Watch], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(esker.lance.refs.putting, "is_behind_network", lambda uri: True)
    watched["f"] = lambda verb, path: "fail" if verb == "put_if_absent" and "_refs/" in path else None
    dataset = esker.dataset(f"fault://{three}")
    for create in (dataset.tags.create, dataset.create_branch):
        with pytest.raises(CommitStateUnknownError, match=r"was created is not known: look before"):
            create("a", 1)
    watched["f"] = lambda verb, path: "lose_reply" if verb == "put_if_absent" and "_refs/" in path else None
    dataset.tags.create("a", 1)
    assert dataset.tags.get_version("a") == 1
    watched["f"] = lambda verb, path: "fail" if verb == "delete" and "_refs/" in path else None
    with pytest.raises(CommitStateUnknownError, match=r"was deleted is not known: look before"):
        dataset.tags.delete("a")
    watched["f"] = lambda verb, path: "lose_reply" if verb == "delete" and "_refs/" in path else None
    dataset.tags.delete("a")
    assert dataset.tags.list() == {}


def test_a_put_over_a_network_that_is_refused_lands_never(
    three: str, watched: dict[str, Watch], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(esker.lance.refs.putting, "is_behind_network", lambda uri: True)
    watched["f"] = lambda verb, path: "disk_full" if verb.startswith("put") and "_refs/" in path else None
    dataset = esker.dataset(f"fault://{three}")
    for create in (dataset.tags.create, dataset.create_branch):
        with pytest.raises(IOFailedError, match="_refs/") as raised:
            create("a", 1)
        assert type(raised.value) is IOFailedError
    esker.dataset(three).tags.create("a", 1)
    with pytest.raises(IOFailedError, match="_refs/") as raised:
        dataset.tags.update("a", 2)
    assert type(raised.value) is IOFailedError
    assert dataset.tags.get_version("a") == 1


def test_a_lost_reply_that_cannot_be_looked_up_is_said_to_be_unknown(three: str, watched: dict[str, Watch]) -> None:
    def lose(verb: str, path: str) -> str | None:
        if "_refs/" not in path:
            return None
        return "lose_reply" if verb == "put_if_absent" else "fail"

    watched["f"] = lose
    with pytest.raises(CommitStateUnknownError, match="whether _refs/tags/a.json of .* was created is not known"):
        esker.dataset(f"fault://{three}").tags.create("a", 1)
    assert esker.dataset(three).tags.get_version("a") == 1


def _clean(uri: str) -> int:
    return esker.dataset(uri).cleanup_old_versions(retain_versions=1, delete_unverified=True).old_versions


@pytest.mark.parametrize(("verb", "part"), [("put_if_absent", "_refs/"), ("head", "614.manifest")])
def test_a_clean_up_before_the_tag_is_put_is_noticed(
    three: str, watched: dict[str, Watch], verb: str, part: str
) -> None:
    watched["f"] = meanwhile(lambda: _clean(three), verb=verb, part=part)
    with pytest.raises(NotFoundError, match="while it was being tagged|does not exist"):
        esker.dataset(f"fault://{three}").tags.create("a", 1)
    assert esker.dataset(three).tags.list() == {}
    assert [version["version"] for version in esker.dataset(three).versions()] == [3]


def test_a_clean_up_while_a_tag_is_moved_leaves_the_tag_where_it_was(three: str, watched: dict[str, Watch]) -> None:
    tags = esker.dataset(three).tags
    tags.create("a", 3)
    before = _refs(three)
    watched["f"] = meanwhile(lambda: _clean(three), verb="put", part="_refs/")
    with pytest.raises(NotFoundError, match="while it was being tagged"):
        esker.dataset(f"fault://{three}").tags.update("a", 1)
    assert _refs(three) == before


@pytest.mark.parametrize("nth", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("verb", ["delete", "list", "get"])
def test_a_version_that_is_tagged_while_a_clean_up_runs_can_be_read(
    three: str, watched: dict[str, Watch], verb: str, nth: int
) -> None:
    """Either the tag is there and its version is whole, or the tagger was told that the version is gone."""
    rows = esker.dataset(three, version=1).to_table()
    told: list[Exception] = []

    def tag() -> None:
        try:
            esker.dataset(three).tags.create("a", 1)
        except NotFoundError as error:
            told.append(error)

    watched["f"] = meanwhile(tag, verb=verb, part="", nth=nth)
    esker.dataset(f"fault://{three}").cleanup_old_versions(
        retain_versions=1, delete_unverified=True, error_if_tagged_old_versions=False
    )
    watched.clear()
    if told:
        assert esker.dataset(three).tags.list() == {}
    else:
        assert esker.dataset(three, version="a").to_table() == rows == lance.dataset(three, version="a").to_table()
        esker.dataset(three, version="a").validate()
    assert 2 not in [version["version"] for version in esker.dataset(three).versions()]


def test_a_manifest_that_was_removed_comes_back_for_a_tag(three: str, watched: dict[str, Watch]) -> None:
    # The tag is put, and its version looked up, before the manifest goes; the clean-up had read the tags before.
    data = Path(three, "_versions", f"{2**64 - 2:020}.manifest").read_bytes()
    rows = esker.dataset(three, version=1).to_table()
    create = lambda: esker.dataset(three).tags.create("a", 1)  # noqa: E731
    watched["f"] = meanwhile(create, verb="delete", part=f"{2**64 - 2:020}.manifest")
    stats = esker.dataset(f"fault://{three}").cleanup_old_versions(retain_versions=1, delete_unverified=True)
    assert stats.old_versions == 1
    assert Path(three, "_versions", f"{2**64 - 2:020}.manifest").read_bytes() == data
    assert esker.dataset(three, version="a").to_table() == rows


@pytest.mark.parametrize("names", ["V1", "V2"])
def test_tags_of_tables_with_either_names_of_manifests(uri: str, names: str) -> None:
    for number in range(3):
        mode = "append" if number else "create"
        esker.write_dataset(pa.table({"id": [number]}), uri, mode=mode, enable_v2_manifest_paths=names == "V2")
    esker.dataset(uri).tags.create("a", 2)
    lance.dataset(uri).tags.create("b", 2)
    sizes = {tag["manifest_size"] for tag in esker.dataset(uri).tags.list().values()}
    assert len(sizes) == 1
    assert esker.dataset(uri, version="a").count_rows() == lance.dataset(uri, version="a").count_rows() == 2


def test_tags_with_an_external_manifest_store(uri: str, tmp_path: Path) -> None:
    options = {"manifest_store": f"sqlite://{tmp_path}/manifests.db"}
    for number in range(3):
        mode = "append" if number else "create"
        esker.write_dataset(pa.table({"id": [number]}), uri, mode=mode, storage_options=options)
    dataset = esker.dataset(uri, storage_options=options)
    dataset.tags.create("a", 2)
    with pytest.raises(RefConflictError):
        dataset.tags.create("a", 3)
    assert esker.dataset(uri, version="a", storage_options=options).count_rows() == 2
    stats = dataset.cleanup_old_versions(retain_versions=1, error_if_tagged_old_versions=False, delete_unverified=True)
    assert stats.old_versions == 1
    assert dataset.checkout_version("a").to_table()["id"].to_pylist() == [0, 1]


def test_detached_versions_can_be_tagged(three: str) -> None:
    transaction = esker.LanceOperation.UpdateConfig(config_updates=esker.LanceOperation.UpdateMap({"a": "b"}))
    detached = esker.LanceDataset.commit(three, transaction, read_version=2, detached=True)
    detached.tags.create("aside")
    assert esker.dataset(three, version="aside").version == detached.version
    assert lance.dataset(three).tags.get_version("aside") == detached.version


def test_asof_takes_the_newest_version_before_a_time(three: str) -> None:
    times = [version["timestamp"] for version in esker.dataset(three).versions()]
    # pylance passes times through a float, and tells one in ten a microsecond early or late: none is asked of it that
    # is as near to a version's.
    between = times[1] + (times[2] - times[1]) / 2
    assert esker.dataset(three, asof=between).version == lance.dataset(three, asof=between).version == 2
    assert esker.dataset(three, asof=times[2]).version == 2
    assert esker.dataset(three, asof=times[2] + timedelta(microseconds=1)).version == 3
    assert esker.dataset(three, version=1, asof=times[2]).version == 1
    with pytest.raises(ValueError, match="is earlier than the first version"):
        esker.dataset(three, asof=times[0])


def test_a_checkout_of_the_latest_version_from_a_tag(three: str) -> None:
    for library in (esker, lance):
        name = library.__name__
        library.dataset(three).tags.create(name, 1)
        dataset = library.dataset(three, version=name)
        assert dataset.version == 1
        dataset.checkout_latest()
        assert dataset.version == 3
