"""Histories and heads: what reading them costs, who packs them, and what becomes of old entries."""

from __future__ import annotations

import json
import os
import time
import uuid
from pathlib import Path

import pytest

from esker.exceptions import IOFailedError, NotFoundError
from esker.repo import Repository, repository
from esker.repo.committing import ref_move
from esker.repo.refs import commit_packs
from esker.repo.refs.numbered_log import OLD_SECONDS, LogEntry, NumberedLog
from tests.servers import S3Server
from tests.servers.counting import CountingProxy


@pytest.fixture
def repo() -> Repository:
    return Repository.create(f"memory://history-{uuid.uuid4().hex}", committer="me")


@pytest.fixture
def on_disk(tmp_path: Path) -> Repository:
    return Repository.create(tmp_path / "repo", committer="me")


def commits(repo: Repository, branch: str, count: int) -> None:
    for n in range(count):
        repo.branch(branch).commit(f"{branch} {n}", allow_empty=True)


def cold(repo: Repository) -> Repository:
    found = repository(repo.uri)
    found._core.store.io_stats()
    return found


def reads(repo: Repository) -> int:
    return repo._core.store.io_stats().read_iops


def test_a_history_that_nobody_maintained_costs_no_request_a_commit(repo: Repository) -> None:
    commits(repo, "main", 300)
    found = cold(repo)
    assert len(list(found.ref("main").log())) == 301
    # The branch's last entry, a listing of packs, and at most seven packs a class of size.
    assert reads(found) <= 8 + 2 * commit_packs.JOINED
    short = cold(repo)
    assert [c.message for c in short.ref("main").log(max_amount=5)] == [f"main {n}" for n in range(299, 294, -1)]
    # The last entry is found from a hint; what it carries along is not asked for.
    assert reads(short) <= 12


def test_merge_bases_far_back_cost_no_request_a_commit(repo: Repository) -> None:
    commits(repo, "main", 40)
    repo.branch("dev").create("main")
    commits(repo, "main", 150)
    commits(repo, "dev", 150)
    base = repo.ref("main~150").get_commit()
    found = cold(repo)
    left, right = found.ref("main").get_commit(), found.ref("dev").get_commit()
    assert found._core.commits.merge_base(left.id, right.id) == base
    assert reads(found) <= 16 + 2 * commit_packs.JOINED


def test_merges_carry_along_what_they_bring(repo: Repository) -> None:
    for n in range(6):
        repo.branch(f"b{n}").create("main")
        commits(repo, f"b{n}", 3)
        repo.branch(f"b{n}").merge_into("main", allow_empty=True)
    found = cold(repo)
    assert len(list(found.ref("main").log())) == 1 + 6 * 4
    assert reads(found) <= 7


def test_an_entry_stays_small_whatever_the_commits_say(on_disk: Repository) -> None:
    for n in range(40):
        on_disk.branch("main").commit(f"{n}", {"said": "x" * 10_000}, allow_empty=True)
    sizes = [path.stat().st_size for path in Path(on_disk.uri, "_esker/refs/heads/main").iterdir()]
    assert max(sizes) < ref_move.PACK_BYTES + 40_000
    assert len(list(cold(on_disk).ref("main").log())) == 41


def test_packs_are_joined_when_there_are_many(repo: Repository) -> None:
    commits(repo, "main", 64 * 8)
    sizes = [commit_packs.size_of(path) for path in repo._core.commits.packs.paths()]
    assert sum(sizes) >= 64 * 8 - 2 * commit_packs.PACK_COMMITS
    assert len(sizes) < 2 * commit_packs.JOINED
    assert max(sizes) >= commit_packs.PACK_COMMITS * commit_packs.JOINED
    assert repo.pack_refs() == 64 * 8 + 1
    (path,) = repo._core.commits.packs.paths()
    assert commit_packs.size_of(path) == 64 * 8 + 1


def test_without_packs_everything_is_found_all_the_same(on_disk: Repository) -> None:
    commits(on_disk, "main", 100)
    for path in Path(on_disk.uri, "_esker/packs").iterdir():
        path.unlink()
    assert len(list(cold(on_disk).ref("main").log())) == 101


def test_a_pack_that_cannot_be_written_fails_no_commit(repo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: commit_packs.Packs, commits: object) -> str:
        raise IOFailedError("no space left")

    monkeypatch.setattr(commit_packs.Packs, "put", refuse)
    commits(repo, "main", 200)
    monkeypatch.undo()
    head = repo._core.log("main").head()
    assert head is not None
    assert commit_packs.PACK_COMMITS < len(head.body["history"]) <= ref_move.MOST_BEFORE
    commits(repo, "main", 1)
    assert repo._core.commits.packs.paths()
    assert len(list(cold(repo).ref("main").log())) == 202


def test_branches_are_listed_with_a_look_behind_each_and_no_more(repo: Repository) -> None:
    for n in range(20):
        repo.branch(f"b/{n:02}").create("main")
    repo.branch("b/07").delete()
    repo.pack_refs()
    found = cold(repo)
    assert [branch.id for branch in found.branches()] == [*(f"b/{n:02}" for n in range(20) if n != 7), "main"]
    # A listing, what is packed, and a look behind each.
    assert reads(found) <= 2 + 21
    # What happened since is seen, a deleted branch and a new one among it.
    repo.branch("b/03").delete()
    repo.branch("b/07").create("main")
    commits(repo, "b/05", 2)
    later = cold(repo)
    assert set(later._core.heads()) == {branch.id for branch in repo.branches()}
    assert later._core.heads()["b/05"].message == "b/05 1"


def test_packed_heads_that_are_old_or_broken_are_not_used(on_disk: Repository) -> None:
    commits(on_disk, "main", 3)
    on_disk.pack_refs()
    commits(on_disk, "main", 2)
    path = Path(on_disk.uri, "_esker/refs/packed_heads.json")
    said = json.loads(path.read_text())
    for other in (
        json.dumps({**said, "time": said["time"] - 7 * 86400}),
        "{",
        "[]",
        '{"time": 9e99, "heads": {"x": 1}}',
    ):
        path.write_text(other)
        assert cold(on_disk)._core.heads()["main"].message == "main 1"


def test_old_entries_go_while_commits_are_made(on_disk: Repository) -> None:
    log = on_disk._core.log("main")
    commits(on_disk, "main", 130)
    month_ago = time.time() - 30 * 86400
    for number in log.numbers():
        os.utime(Path(on_disk.uri, log.path(number)), (month_ago, month_ago))
    held = cold(on_disk)
    held.ref("main").get_commit()
    commits(on_disk, "main", 64)
    # Of 131 old entries and 64 new ones those that are among the newest 100 stay, and all that are young.
    assert log.numbers() == list(range(193 - 100, 196))
    assert held.ref("main").get_commit().message == "main 63"
    assert len(list(held.ref("main").log())) == 195
    assert list(cold(on_disk).fsck()) == []


def test_a_writer_that_slept_does_not_win_a_number_that_was_freed(repo: Repository) -> None:
    log = repo._core.log("main")
    commits(repo, "main", 20)
    asleep = NumberedLog(log.store, log.folder)
    asleep.head()
    slept = asleep._looked
    commits(repo, "main", 150)
    # As compaction would after a week.
    assert log.compact(keep=5, younger_than_s=-60) == 166
    for clock in (0, 1):
        asleep._last = LogEntry(21, "commit")
        asleep._looked = (slept[0] - (OLD_SECONDS + 1) * (clock == 0), slept[1] - (OLD_SECONDS + 1) * (clock == 1))
        # It has made an entry for the number after the one that it knows, and puts it now.
        assert not asleep.put(22, b"{}")
        head = asleep.head()
        assert head is not None
        assert head.number == 171
    assert log.entry(22) is None


def test_of_a_pack_that_lies_nothing_is_believed(on_disk: Repository) -> None:
    commits(on_disk, "main", 70)
    path = Path(on_disk.uri, on_disk._core.commits.packs.paths()[0])
    said = json.loads(path.read_text())
    said[0]["message"] = "another"
    path.write_text(json.dumps(said))
    with pytest.raises(ValueError, match="whose id is"):
        list(cold(on_disk).ref("main").log())


def test_a_commit_that_is_nowhere_is_not_found(repo: Repository) -> None:
    with pytest.raises(NotFoundError, match="expected a commit of the id"):
        repo.ref("ab" * 32).get_commit()


def test_a_history_by_path_reads_the_metaranges_and_little_of_the_ranges(repo: Repository) -> None:
    main = repo.branch("main")
    repo.change_settings(max_range_size=20_000, raggedness=100)
    for n in range(600):
        main.object(f"days/{n // 10:03}/{n:05}.csv").upload("1")
    main.commit("filled")
    changed = []
    for n in range(60):
        path = "days/005/00050.csv" if n % 20 == 7 else f"days/{n % 50 + 10:03}/new-{n}.csv"
        main.object(path).upload(str(n))
        commit = main.commit(f"{n}")
        changed += [commit.id] if n % 20 == 7 else []
        main.commit("nothing", allow_empty=True)
    for asked in ({"objects": ["days/005/00050.csv"]}, {"prefixes": ["days/005/"]}):
        found = cold(repo)
        told = [commit.id for commit in found.ref("main").log(**asked)]  # type: ignore[arg-type]
        assert told[:-1] == changed[::-1]
        assert repo.ref(told[-1]).get_commit().message == "filled"
        # A metarange for each content, and of few ranges an end and a block: those that cover the path.
        assert reads(found) <= 61 + 4 * 4 + 8 + 2 * commit_packs.JOINED
    # Who wants the last change alone waits for no more than a few commits.
    found = cold(repo)
    found.ref("main").get_commit()
    before = reads(found)
    assert len(list(found.ref("main").log(1, prefixes=["days/"]))) == 1
    assert reads(found) - before <= 24


def test_the_start_of_an_id_is_looked_up_without_a_list_of_all_commits(s3: S3Server) -> None:
    with CountingProxy(s3.server.port) as proxy:
        options = {**s3.storage_options, "aws_endpoint": proxy.endpoint}
        lake = Repository.create(f"s3://{s3.bucket()}/lake", storage_options=options)
        for n in range(20):
            lake.branch("main").commit(f"{n}", allow_empty=True)
        wanted = lake.ref("main~7").get_commit()
        found = repository(lake.uri, storage_options=options)
        proxy.take()
        assert found.ref(wanted.id[:12]).get_commit() == wanted
        listed = [request.query for request in proxy.take() if request.kind.startswith("LIST")]
        # The branch's log and the packs may be listed as well; commits only those that start so.
        assert [wanted.id[:12] in query for query in listed if "commits" in query] == [True]
        with pytest.raises(NotFoundError):
            found.ref("0123456789").get_commit()
