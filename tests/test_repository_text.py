"""Text that a repository keeps, wherever text may stand: what is Unicode comes back as it was, the rest is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from esker.exceptions import InvalidArgumentError, NotFoundError
from esker.repo import Branch, ObjectInfo, Repository, repository

TEXTS = {
    "line separator": "a\u2028b",
    "next line": "a\u0085b",
    "newlines": "a\r\nb\n",
    "null": "a\0b",
    "right to left": "\u202egpj.exe",
    "emoji": "\U0001f600\u200d\U0001f525",
    "percent": "100%2F%",
    "quotes": "'\"`\\",
    "json": '{"a": [1]}',
    "spaces": " \t ",
    "composed": "e\u0301 \u00e9",
    "last": "\U0010ffff",
    "null bytes alone": "\0",
    "dots": "..",
    "slashes": "//a//",
    "long": "z\u00e9" * (1 << 19),
}
HALF = "a\ud800b"


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository.create(tmp_path / "repo", committer="me")


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_text_comes_back_as_it_was(text: str, repo: Repository, tmp_path: Path) -> None:
    main = repo.branch("main")
    path = text
    main.object(path).upload(text, content_type=text, metadata={text: text})
    assert [change.path for change in main.uncommitted()] == [path]
    main.commit(text, {text: text}, committer=text)
    repo.branch("dev").create("main")
    repo.branch("dev").object(path).upload("other", metadata={text: text})
    repo.branch("dev").commit("other")
    repo.branch("dev").merge_into("main", message=text, metadata={text: text}, committer=text)
    repo.tag("v1").create("main~1")
    found = repository(repo.uri)
    for ref, content in (("v1", text), ("main", "other")):
        commit = found.ref(ref).get_commit()
        assert (commit.message, commit.metadata, commit.committer) == (text, {text: text}, text)
        (entry,) = found.ref(ref).objects()
        assert isinstance(entry, ObjectInfo)
        assert (entry.path, entry.metadata) == (path, {text: text})
        assert found.ref(ref).object(path).reader().read().decode() == content
    assert found.ref("v1").object(path).stat().content_type == text
    assert [entry.path for entry in found.ref("main").objects(prefix=path)] == [path]
    assert list(found.ref("main").objects(after=path)) == []
    (change,) = found.ref("v1").diff("main")
    assert (change.path, change.type) == (path, "changed")
    assert len(list(found.ref("main").log(objects=[path]))) == 3
    assert list(found.fsck()) == []
    # The same in lakeFS's own format, and out of a pack.
    repo.pack_refs()
    repo.dump_refs()
    moved = Repository.create(tmp_path / "moved")
    for folder in ("_lakefs", "data"):
        shutil.copytree(Path(repo.uri, folder), Path(moved.uri, folder), dirs_exist_ok=True)
    moved.restore_refs()
    for other in (moved, repository(repo.uri)):
        assert [c.message for c in other.ref("main").log(first_parent=True)][:2] == [text, text]
        assert [entry.path for entry in other.ref("v1").objects()] == [path]
    _export(found, path, tmp_path / "deep" / "out")


def _export(repo: Repository, path: str, target: Path) -> None:
    """An export works, or says before anything is written that it does not."""
    target.parent.mkdir()
    repo_before = sorted(file for file in Path(repo.uri).rglob("*"))
    told = None
    try:
        assert repo.ref("main").export(str(target)) == 1
    except InvalidArgumentError as error:
        told = str(error)
    if told is not None:
        assert "nothing was exported" in told
        assert len(told) < 2000
        assert not target.exists()
    else:
        assert (target / path).read_text() == "other"
        assert [file for file in target.rglob("*") if file.is_file()] == [target / path]
    assert sorted(file for file in target.parent.iterdir()) in ([], [target])
    assert sorted(file for file in Path(repo.uri).rglob("*")) == repo_before


ODD = ["/abs", "a//b", "a/", "..", "../up", "a/../../up", ".", "./a", "a/.", "x" * 300, "a\nb", ".tmp-" + "0a" * 16]


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize("staged", [False, True])
def test_paths_that_no_folder_can_hold_are_told_before_anything_is_written(
    odd: str, staged: bool, repo: Repository, tmp_path: Path
) -> None:
    main = repo.branch("main")
    for path in ("a0", odd, "zzz"):
        main.object(path).upload(path)
    ref = main
    if not staged:
        main.commit("odd")
        ref = repository(repo.uri).ref("main")  # type: ignore[assignment]
    with pytest.raises(InvalidArgumentError, match="1 of 3 paths"):
        ref.export(str(tmp_path / "deep/out"))
    assert not (tmp_path / "deep").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["repo"]
    assert ref.export(str(tmp_path / "deep/out"), prefix="zzz") == 1
    assert ref.export("memory://odd", prefix="a0") == 1


def test_an_object_below_another_is_told_before_anything_is_written(repo: Repository, tmp_path: Path) -> None:
    main = repo.branch("main")
    for path in ("a", "a-b", "a.c/d", "a/b/c", "b"):
        main.object(path).upload(path)
    main.commit("both")
    with pytest.raises(InvalidArgumentError, match=r"'a/b/c' \('a' is an object, and no folder\)"):
        repo.ref("main").export(str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
    # A bucket has no folders.
    assert repo.ref("main").export("memory://both") == 5


HALVES: dict[str, Callable[[Repository, Branch], object]] = {
    "path": lambda repo, main: main.object(HALF).upload("x"),
    "path that is read": lambda repo, main: repo.ref("main").object(HALF).stat(),
    "path that goes": lambda repo, main: main.delete_objects(HALF),
    "text": lambda repo, main: main.object("a").upload(HALF),
    "written text": lambda repo, main: main.object("a").writer("w").write(HALF),
    "content type": lambda repo, main: main.object("a").upload("x", content_type=HALF),
    "key of an object": lambda repo, main: main.object("a").upload("x", metadata={HALF: "x"}),
    "value of an object": lambda repo, main: main.object("a").upload("x", metadata={"x": HALF}),
    "message": lambda repo, main: main.commit(HALF, allow_empty=True),
    "key of a commit": lambda repo, main: main.commit("x", {HALF: "x"}, allow_empty=True),
    "value of a commit": lambda repo, main: main.commit("x", {"x": HALF}, allow_empty=True),
    "number as a value": lambda repo, main: main.commit("x", {"x": 1}, allow_empty=True),  # type: ignore[dict-item]
    "no message": lambda repo, main: main.commit(None, allow_empty=True),  # type: ignore[arg-type]
    "committer": lambda repo, main: main.commit("x", committer=HALF, allow_empty=True),
    "message of a merge": lambda repo, main: main.merge_into("main", message=HALF, allow_empty=True),
    "branch": lambda repo, main: repo.branch(HALF).create("main"),
    "branch that is read": lambda repo, main: repo.branch(HALF).get_commit(),
    "tag": lambda repo, main: repo.tag(HALF).create("main"),
    "tag that is read": lambda repo, main: repo.tag(HALF).get_commit(),
    "ref": lambda repo, main: repo.ref(HALF).get_commit(),
    "prefix": lambda repo, main: list(main.objects(prefix=HALF)),
    "after": lambda repo, main: list(repo.ref("main").objects(after=HALF)),
    "import": lambda repo, main: main.import_data().object("/etc/hostname", HALF),
    "metadata of a repository": lambda repo, main: Repository.create("memory://", metadata={"x": HALF}),
    "committer of a repository": lambda repo, main: Repository.create("memory://", committer=HALF),
}


@pytest.mark.parametrize("work", HALVES.values(), ids=HALVES)
def test_half_a_character_is_refused(work: Callable[[Repository, Branch], object], repo: Repository) -> None:
    with pytest.raises(InvalidArgumentError):
        work(repo, repo.branch("main"))
    assert list(repo.branch("main").uncommitted()) == []
    assert len(list(repository(repo.uri).ref("main").log())) == 1


@pytest.mark.parametrize("name", [text for text in TEXTS.values() if len(text) < 100], ids=str.encode)
def test_names_of_refs_are_plain_and_others_name_nothing(name: str, repo: Repository) -> None:
    for ref in (repo.branch(name), repo.tag(name)):
        with pytest.raises(InvalidArgumentError):
            ref.create("main")
    with pytest.raises((NotFoundError, InvalidArgumentError)):
        repo.ref(name).get_commit()


class Nothing:
    """No data."""


@pytest.mark.parametrize(
    "data", [None, 5, {"a": 1}, {b"a"}, [1], ["a", 2], Nothing()], ids=lambda data: type(data).__name__
)
def test_what_is_no_data_is_refused(data: object, repo: Repository) -> None:
    with pytest.raises(InvalidArgumentError, match="expected bytes"):
        repo.branch("main").object("x").upload(data)  # type: ignore[arg-type]
    assert not repo.branch("main").object("x").exists()


def test_a_file_of_this_machine_is_uploaded_by_its_path(repo: Repository, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"bytes")
    repo.branch("main").object("x").upload(tmp_path / "file", metadata={"k": "v"})
    assert repo.branch("main").object("x").reader().read() == b"bytes"
    assert repo.branch("main").object("x").stat().metadata == {"k": "v"}
    with pytest.raises(FileNotFoundError):
        repo.branch("main").object("y").upload(tmp_path / "missing")


@pytest.mark.parametrize("name", ["-x", "/x", ".x", "x..y", "x.lock", "x/", "x//y", "é", "a" * 256])
def test_a_name_that_no_branch_has_is_told_the_rule_that_it_breaks(name: str, repo: Repository) -> None:
    rules = (
        "up to 255 letters of ASCII",
        "neither '.', '-' nor '/' first",
        "no '/' last",
        r"'\.\.', '//' and '\.lock'",
    )
    for make in (repo.branch(name).create, repo.tag(name).create):
        with pytest.raises(InvalidArgumentError, match=".*".join(rules)):
            make("main")
    assert repo.branch("a" * 255).create("main").id == "a" * 255
