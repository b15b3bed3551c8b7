"""What lies below `_esker/` is JSON that anybody may have written: whatever it says ends in an answer or an error."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from esker.exceptions import EskerError
from esker.repo import Repository

SEEDS = int(os.environ.get("ESKER_HOSTILE_SEEDS", "1"))
"""Each breaks every record twice; more of them by hand."""
ODD: list[Any] = [
    None, True, 0, -1, 10**30, 1e400, float("nan"),
    "", "main", "\ud800", "../..", "a" * 300, [], ["a"], [[]], [None], {}, {"a": 1},
]  # fmt: skip


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository that has all kinds of records."""
    folder = tmp_path_factory.mktemp("pristine") / "repo"
    repo = Repository.create(folder, committer="me", metadata={"k": "v"})
    repo.change_settings(protected_branches=["x*"], branch_retention_days={"main": 3})
    main = repo.branch("main")
    for n in range(4):
        main.object(f"a/{n}").upload(str(n))
        main.commit(f"commit {n}", {"n": str(n)})
    repo.branch("side/1").create("main~1")
    repo.branch("side/1").object("b").upload("b")
    repo.branch("side/1").commit("on side")
    repo.branch("side/1").merge_into("main")
    repo.branch("gone").create("main")
    repo.branch("gone").delete()
    repo.tag("v1").create("main~1")
    repo.pack_refs()
    repo.gc(dry_run=False, grace_s=-3600)
    repo.dump_refs()
    main.object("c").upload("c")
    main.commit("the last")
    return folder


def records(folder: Path) -> list[Path]:
    """All that is JSON or a number in it, and the manifest of the dump."""
    found = [path for path in (folder / "_esker").rglob("*") if path.is_file()]
    return sorted([*found, folder / "_lakefs/refs_manifest.json"])


def use(folder: Path) -> None:
    """Reads and writes all that there is; what is wrong ends each part, and no more."""
    repo = None
    with suppress(EskerError):
        repo = Repository(folder)
    if repo is None:
        return
    parts: list[Callable[[], object]] = [
        lambda: [(one.id, one.get_commit()) for one in repo.branches()],
        lambda: [(one.id, one.get_commit()) for one in repo.tags()],
        lambda: list(repo.ref("main").log()),
        lambda: list(repo.ref("side/1").objects()),
        lambda: repo.ref("main").object("a/1").reader().read(),
        lambda: list(repo.ref("v1").diff("main")),
        lambda: repo.settings.rule(),
        lambda: repo.change_settings(raggedness=7),
        lambda: repo.metadata | {"id": repo.id, "branch": repo.default_branch},
        lambda: list(repo.fsck()),
        lambda: repo.gc(),
        lambda: repo.pack_refs(),
        lambda: repo.dump_refs(),
        lambda: repo.branch("main").object("x").upload("x"),
        lambda: repo.branch("main").commit("x"),
        lambda: repo.branch("main").merge_into("side/1"),
        lambda: repo.branch("new").create("v1"),
        lambda: repo.gc(dry_run=False, grace_s=-3600),
        lambda: list(Repository(folder).fsck()),
    ]
    for part in parts:
        with suppress(EskerError):
            part()


def restore(folder: Path) -> None:
    """Takes over the dump that is there."""
    shutil.rmtree(folder / "_esker")
    with suppress(EskerError):
        Repository.create(folder).restore_refs()


def places(said: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where in a JSON value something is that may be replaced."""
    found = [at]
    inner = said.items() if isinstance(said, dict) else enumerate(said) if isinstance(said, list) else ()
    for key, value in inner:
        found += places(value, (*at, key))
    return found


def replaced(said: Any, at: tuple[Any, ...], value: Any) -> Any:
    """A JSON value with another at a place."""
    if not at:
        return value
    copy: Any = dict(said) if isinstance(said, dict) else list(said)
    copy[at[0]] = replaced(said[at[0]], at[1:], value)
    return copy


def hostile(data: bytes, numbers: random.Random) -> bytes:
    """The record with something else in one place, or with other bytes."""
    kind = numbers.randrange(8)
    if kind < 5:
        said = json.loads(data)
        at = numbers.choice(places(said))
        return json.dumps(replaced(said, at, numbers.choice(ODD))).encode("utf-8", "surrogatepass")
    if kind == 5:
        at_byte = numbers.randrange(len(data))
        return data[:at_byte] + bytes([numbers.randrange(256)]) + data[at_byte + 1 :]
    if kind == 6:
        return data[: numbers.randrange(len(data))]
    return numbers.choice([b"", b"null", b"[" * 100_000, b'{"a":' * 100_000, b"9" * 5000, b"\xff\xfe", b"\0" * 40])


@pytest.mark.parametrize("seed", range(SEEDS))
def test_any_record_ends_in_an_answer_or_an_error(pristine: Path, tmp_path: Path, seed: int) -> None:
    numbers = random.Random(seed)
    for path in records(pristine):
        for _ in range(2):
            folder = tmp_path / "repo"
            shutil.copytree(pristine, folder)
            broken = folder / path.relative_to(pristine)
            broken.write_bytes(hostile(path.read_bytes(), numbers))
            said = broken.read_bytes()
            try:
                use(folder)
                restore(folder)
            except Exception as error:
                raise AssertionError(f"{path.relative_to(pristine)}: {said[:300]!r}") from error
            shutil.rmtree(folder)
