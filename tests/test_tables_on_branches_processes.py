"""Many processes on four branches and six tables of both formats: every row that was acknowledged is there, once."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from pathlib import Path

import pytest

from esker.exceptions import CommitConflictError, CommitStateUnknownError
from esker.repo import NoChangesError, Repository, repository
from esker.repo.committing import ref_move
from esker.repo.refs import commit_packs
from tests.table_histories import Format, find_content, read_rows, write

PROCESSES = 16
ROUNDS = 12
BRANCHES = ["main", "one", "two", "three/four"]
FORMATS: list[Format] = ["lance", "delta"]
TABLES = {f"{folder}/{format}": format for folder in ("a", "b", "c/d") for format in FORMATS}
Rows = dict[str, list[int]]


def _work(uri: str, n: int) -> tuple[str, Rows, Rows, Counter[str]]:
    """Transactions over two tables and live appends; what landed, what may have, and how often what came of it."""
    repo, branch = repository(uri), BRANCHES[n % len(BRANCHES)]
    # Two tables are left to the branches: the first that is merged brings them whole.
    paths, done = sorted(TABLES)[: None if branch != "main" else 4], Counter[str]()
    landed: Rows = {path: [] for path in TABLES}
    unknown: Rows = {path: [] for path in TABLES}

    def attempt(what: str, rows: Rows, change: object) -> None:
        try:
            change()  # type: ignore[operator]
        except CommitStateUnknownError:
            done[f"{what} unknown"] += 1
            for path, ids in rows.items():
                unknown[path] += ids
        except (CommitConflictError, NoChangesError):
            done[f"{what} refused"] += 1
        else:
            done[what] += 1
            for path, ids in rows.items():
                landed[path] += ids

    for k in range(ROUNDS):
        ids = [(n * ROUNDS + k) * 10 + m for m in range(3)]
        one, other = paths[(n + k) % len(paths)], paths[(n + 3 * k + 1) % len(paths)]

        def both(one: str = one, other: str = other, ids: list[int] = ids) -> None:
            with repo.branch(branch).transact(f"{n} {ids[0]}") as tx:
                write(tx.store_uri(one), TABLES[one], ids[:1], "append")
                write(tx.store_uri(other), TABLES[other], ids[1:2], "append")

        def live(one: str = one, ids: list[int] = ids) -> None:
            write(repo.branch(branch).store_uri(one), TABLES[one], ids[2:], "append")

        rows = {one: ids[:1], other: ids[1:2]} if one != other else {one: ids[:2]}
        attempt("transaction", rows, both)
        attempt("live", {one: ids[2:]}, live)
        if k % 2 and branch != "main":
            attempt("merge", {}, lambda: repo.branch(branch).merge_into("main", strategy="dest-wins"))
    return branch, landed, unknown, done


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every fourth commit packs and joins packs: forked processes inherit it."""
    monkeypatch.setattr(ref_move, "PACK_COMMITS", 4)
    monkeypatch.setattr(ref_move, "UPKEEP_EVERY", 4)
    monkeypatch.setattr(commit_packs, "JOINED", 2)


def test_sixteen_processes_on_four_branches_and_six_tables(tmp_path: Path) -> None:
    repo = Repository.create(tmp_path / "repo", committer="me")
    with repo.branch("main").transact("tables") as tx:
        for n, (path, format) in enumerate(sorted(TABLES.items())):
            write(tx.store_uri(path), format, [-n - 1], "create")
    for name in BRANCHES[1:]:
        repo.branch(name).create("main")
    # Forked, as a data loader's workers are: imports are not what is tested.
    with multiprocessing.get_context("fork").Pool(PROCESSES) as pool:
        told = pool.starmap(_work, [(repo.uri, n) for n in range(PROCESSES)], chunksize=1)
    done = sum((one[3] for one in told), Counter[str]())
    assert done["transaction"] > PROCESSES
    assert done["live"] > PROCESSES
    assert done["merge"] > 0
    main = repo.ref("main")
    for branch in BRANCHES:
        ref = repo.ref(branch)
        logs, _ = find_content(ref)
        assert sorted(logs) == sorted(TABLES)
        for path, log in logs.items():
            found = Counter(read_rows(ref.store_uri(path), log.format))
            assert max(found.values()) == 1, (branch, path)
            mine = {id for name, landed, _, _ in told if name == branch for id in landed[path]}
            may = {id for _, _, unknown, _ in told for id in unknown[path]}
            assert mine <= set(found), (branch, path, done)
            others = {id for name, landed, _, _ in told if name != branch for id in landed[path]}
            assert {id for id in found if id >= 0} <= mine | may | (others if branch == "main" else set()), (
                branch,
                path,
            )
    assert any(id >= 0 for path in ("c/d/delta", "c/d/lance") for id in read_rows(main.store_uri(path), TABLES[path]))
    assert list(Repository(repo.uri).fsck(tables=True)) == []
    for branch in BRANCHES[1:]:
        # What was merged is in main's history.
        repo.branch(branch).merge_into("main", strategy="dest-wins", allow_empty=True)
    assert list(Repository(repo.uri).fsck(tables=True)) == []
