"""A store that fails on purpose, at every operation of what a repository does.

Whatever fails and whenever: each branch is at its old commit or at the new one, nothing that it leads to is missing,
and the next writer goes on from there. A plan that fails is in the test's id, and replays by it.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from esker.exceptions import EskerError
from esker.repo import Repository
from esker.repo.committing import ref_move
from esker.repo.refs import commit_packs
from tests.faulty import Faulty

FAULTS = ["crash_before", "crash_after", "lose_reply", "fail", "disk_full"]


def fill(uri: str) -> None:
    repo = Repository.create(uri, committer="me")
    for path in ("a", "b", "c"):
        repo.branch("main").object(path).upload(path)
    repo.branch("main").commit("first")
    repo.branch("dev").create("main")
    repo.branch("dev").object("d").upload("d")
    repo.branch("dev").commit("second")


def commit(repo: Repository) -> None:
    repo.branch("main").object("a").upload("new")
    repo.branch("main").delete_objects("b")
    repo.branch("main").commit("third")


def merge(repo: Repository) -> None:
    repo.branch("dev").merge_into("main")


def create(repo: Repository) -> None:
    repo.branch("new").create("dev")
    repo.tag("v1").create("dev")


def revert(repo: Repository) -> None:
    repo.branch("dev").revert("dev")


def collect(repo: Repository) -> None:
    # All that is not led to is garbage, however young.
    repo.gc(dry_run=False, grace_s=-3600)


def maintain(repo: Repository) -> None:
    repo.pack_refs()
    for branch in repo.branches():
        repo._core.log(branch.id).compact(keep=1, younger_than_s=-3600)


WORKS: list[Callable[[Repository], None]] = [commit, merge, create, revert, collect, maintain]


def state(repo: Repository) -> dict[str, dict[str, str]]:
    refs = [repo.ref(ref.id) for ref in [*repo.branches(), *repo.tags()]]
    return {ref.id: {entry.path: entry.checksum for entry in ref.objects()} for ref in refs}  # type: ignore[union-attr]


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every commit packs, joins packs and looks after its log."""
    monkeypatch.setattr(ref_move, "PACK_COMMITS", 1)
    monkeypatch.setattr(ref_move, "UPKEEP_EVERY", 1)
    monkeypatch.setattr(commit_packs, "JOINED", 2)


@pytest.mark.parametrize("fault", ["crash_before", "crash_after", "fail"])
@pytest.mark.parametrize("work", [commit, merge], ids=lambda work: work.__name__)
def test_a_commit_that_packs_is_whole_all_the_same(
    work: Callable[[Repository], None], fault: str, eager: None, faulty: Faulty, tmp_path: Path
) -> None:
    test_every_ref_is_at_its_old_or_its_new_commit(work, fault, faulty, tmp_path)
    assert any("_esker/packs/" in path for made in faulty.made for _, verb, path in made.operations if verb == "put")


def check_sound(uri: str, before: dict[str, dict[str, str]], after: dict[str, dict[str, str]], plan: str) -> None:
    """Each ref is where it was or where it was to go, nothing is missing, and the next one commits."""
    found = Repository(uri)
    refs = state(found)
    for ref in {*refs, *after}:
        # Contents rather than commits: a commit's id has the second in it, and a metarange's the address.
        assert refs.get(ref) in (before.get(ref), after.get(ref)), f"{plan}: {ref}"
    assert list(found.fsck()) == [], plan
    found.branch("main").object("next").upload("next")
    found.branch("main").commit("next")
    assert found.ref("main").object("next").exists(), plan


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.__name__)
def test_every_ref_is_at_its_old_or_its_new_commit(
    work: Callable[[Repository], None], fault: str, faulty: Faulty, tmp_path: Path
) -> None:
    pristine, whole = tmp_path / "pristine", tmp_path / "whole"
    fill(str(pristine))
    shutil.copytree(pristine, whole)
    before = state(Repository(whole))
    repo = Repository(f"fault://{whole}", storage_options={"plan": ""})
    work(repo)
    after = state(Repository(whole))
    count = len(faulty.made[-1].operations)
    assert count > 5
    for number in range(count):
        uri = str(tmp_path / f"{number}")
        shutil.copytree(pristine, uri)
        with suppress(EskerError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            work(Repository(f"fault://{uri}", storage_options={"plan": f"{fault}@{number}"}))
        check_sound(uri, before, after, f"{fault}@{number}")


def test_a_lost_reply_is_no_second_commit(faulty: Faulty, tmp_path: Path) -> None:
    fill(str(tmp_path / "pristine"))
    shutil.copytree(tmp_path / "pristine", tmp_path / "probe")
    repo = Repository(f"fault://{tmp_path}/probe", storage_options={"plan": ""})
    commit(repo)
    for number in range(len(faulty.made[-1].operations)):
        uri = str(tmp_path / f"{number}")
        shutil.copytree(tmp_path / "pristine", uri)
        with suppress(EskerError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            commit(Repository(f"fault://{uri}", storage_options={"plan": f"lose_reply@{number}"}))
        messages = [c.message for c in Repository(uri).ref("main").log()]
        assert messages.count("third") <= 1, number
