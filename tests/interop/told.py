"""What a lakeFS server and esker tell of the same repository, in the same words; and how one moves into the other."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

from esker.repo import MergeConflictError, NoChangesError, Reference, Repository

from .lakefs_server import LakeFS, ServerError

Told = list[tuple[str, str, int, str]]


def theirs(lakefs: LakeFS, repository: str, ref: str) -> Told:
    """What the server lists on a ref: path, address, size and checksum."""
    found = lakefs.pages("repositories", repository, "refs", ref, "objects", "ls", presign="false")
    root = f"local://{lakefs.root}/{repository}/"
    return [(o["path"], o["physical_address"].removeprefix(root), o["size_bytes"], o["checksum"]) for o in found]


def ours(ref: Reference) -> Told:
    """The same by esker."""
    found: Any = ref.objects()
    return [(o.path, o.physical_address, o.size_bytes, o.checksum) for o in found]


def their_diff(lakefs: LakeFS, repository: str, left: str, right: str, kind: str = "two_dot") -> list[tuple[str, str]]:
    """The difference by the server."""
    found = lakefs.pages("repositories", repository, "refs", left, "diff", right, type=kind)
    return [(o["type"], o["path"]) for o in found]


def our_diff(repository: Repository, left: str, right: str, kind: str = "two_dot") -> list[tuple[str, str]]:
    """The same by esker."""
    return [(one.type, one.path) for one in repository.ref(left).diff(right, type=kind)]


def their_commits(lakefs: LakeFS, repository: str, ref: str) -> dict[str, Any]:
    """All that the server says of the commits that led to a ref, by their ids."""
    found = lakefs.pages("repositories", repository, "refs", ref, "commits")
    names = ("parents", "committer", "message", "creation_date", "meta_range_id", "metadata", "generation", "version")
    return {one["id"]: {name: one.get(name) or _NOTHING.get(name) for name in names} for one in found}


_NOTHING: dict[str, Any] = {"metadata": {}, "parents": [], "message": "", "meta_range_id": "", "committer": ""}


def our_commits(ref: Reference) -> dict[str, Any]:
    """The same by esker."""
    said = {commit.id: commit.to_json() for commit in ref.log()}
    return {id: {name: value for name, value in one.items() if name != "id"} for id, one in said.items()}


def their_merge(lakefs: LakeFS, repository: str, source: str, dest: str, **body: Any) -> str:
    """What becomes of a merge at the server: merged, conflict or nothing."""
    try:
        lakefs.call("POST", "repositories", repository, "refs", source, "merge", dest, body=body)
    except ServerError as error:
        if error.status == 409:
            return "conflict"
        if error.status == 400 and "no changes" in str(error):
            return "nothing"
        raise
    return "merged"


def our_merge(repository: Repository, source: str, dest: str, **options: Any) -> str:
    """The same by esker."""
    try:
        repository.ref(source).merge_into(dest, **options)
    except MergeConflictError:
        return "conflict"
    except NoChangesError:
        return "nothing"
    return "merged"


def write(branch: Any, numbers: random.Random, count: int, message: str) -> None:
    """A commit of some objects: new ones, changed ones, and some that go."""
    for _ in range(count):
        path = f"t/day={numbers.randrange(20):02}/part-{numbers.randrange(400):04}"
        metadata = {"k": "v"} if numbers.random() < 0.2 else {}
        branch.object(path).upload(numbers.randbytes(numbers.randrange(50)), metadata=metadata)
    there = [one.path for one in branch.objects()]
    branch.delete_objects(numbers.sample(there, min(len(there), count // 10)))
    branch.commit(message, metadata={"n": str(count)})


def move_in(lakefs: LakeFS, repository: Repository, name: str) -> None:
    """Gives the server a repository of ours: a bare one, our files, and the dump of our refs."""
    dump = repository.dump_refs()
    folder = lakefs.create(name, bare=True, default_branch=repository.default_branch)
    for below in ("_lakefs", "data"):
        if Path(repository.uri, below).exists():
            shutil.copytree(Path(repository.uri, below), folder / below, dirs_exist_ok=True)
    body = {
        "commits_meta_range_id": dump.commits_meta_range_id,
        "branches_meta_range_id": dump.branches_meta_range_id,
        "tags_meta_range_id": dump.tags_meta_range_id,
    }
    lakefs.call("PUT", "repositories", name, "refs", "restore", body=body)


def move_out(lakefs: LakeFS, name: str, own: Path, default_branch: str = "main") -> Repository:
    """Takes a repository of the server: a copy of its files, and its refs as it dumps them now."""
    lakefs.call("PUT", "repositories", name, "refs", "dump")
    shutil.copytree(lakefs.root / name, own, ignore=shutil.ignore_patterns("dummy"))
    repository = Repository.create(str(own), default_branch=default_branch)
    repository.restore_refs()
    return repository
