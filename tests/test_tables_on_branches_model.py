"""Tables on branches against a plain model: whatever is done, each table opens on each ref with the model's rows.

What may end in a conflict may be refused, by a typed error and with nothing changed; what lands has to be what the
model says, version by version. `ESKER_MODEL_EXAMPLES` is how many histories there are, `ESKER_MODEL_STEPS` how long
each is.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, event, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

import esker
from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import CommitConflictError, EskerError
from esker.repo import NoChangesError, Repository, repository
from esker.repo.committing import ref_move
from esker.repo.refs import commit_packs
from tests.table_changes import VERBS, Step, TableChange, do, fresh_ids
from tests.table_histories import (
    CONFLICT,
    Becomes,
    Content,
    Log,
    Rows,
    completed,
    find_content,
    learned,
    merged_plain,
    merged_table,
    new_versions,
    peers_rows,
    read_rows,
    rows_of,
    transplanted_table,
)

NAMES = ["main", "dev", "x/y", "z"]
BRANCHES = st.sampled_from(NAMES)
TABLES = ["a", "lake/b", "lake/c"]
STEPS = st.builds(Step, st.sampled_from(VERBS), st.sampled_from(TABLES), st.integers(0, 9))
PLAIN = st.dictionaries(st.sampled_from(["plain/p", "plain/q"]), st.sampled_from("12"), max_size=1)
STRATEGIES = st.sampled_from([None, None, None, "source-wins", "dest-wins"])
MEANWHILE = st.sampled_from(["nothing", "nothing", "live", "transaction", "merge", "reset"])
HOUSEKEEPING = ["delete", "tag", "collect", "open again", "peers"]
NUMBERS = itertools.count()
Allowed = dict[str, list[Becomes | None]]


class TablesMachine(RuleBasedStateMachine):
    """Every step is made in the repository and in the model; both must look the same after it."""

    unfinished = 0
    """Steps that have begun; where one has failed, what is left tells nothing more."""

    @initialize(first=st.lists(STEPS, min_size=2, max_size=4))
    def create(self, first: list[Step]) -> None:
        self.repo = Repository.create(f"memory://tables-{next(NUMBERS)}", committer="me")
        self.repo.change_settings(max_range_size=2000, raggedness=4)
        id = self.repo.ref("main").get_commit().id
        self.contents: dict[str, Content] = {id: Content()}
        self.parents: dict[str, tuple[str, ...]] = {id: ()}
        self.heads = {"main": id}
        self.tags: dict[str, str] = {}
        self.rows: dict[str, Rows] = {}
        self.held: list[tuple[str, str, Log, Any]] = []
        self.transact("main", [Step("append", step.path, step.choice) for step in first], {}, None)
        for name in NAMES[1:]:
            self.create_branch(name, "main")

    def head(self, branch: str) -> Content:
        return self.contents[self.heads[branch]]

    def attempt(
        self,
        what: str,
        branch: str,
        work: Callable[[], object],
        allowed: Callable[[], Allowed],
        plain: Callable[[], Mapping[str, str] | None],
    ) -> bool:
        """Does something to a branch; whether it landed. What it may end in is asked for after it."""
        self.unfinished += 1
        try:
            work()
        except (NoChangesError, CommitConflictError) as error:
            told, may, objects = f"{what} into {branch}: {error!r}", allowed(), plain()
            event(f"{what}: {type(error).__name__}")
            assert self.repo.ref(branch).get_commit().id == self.heads[branch], told
            if isinstance(error, NoChangesError):
                assert self.may_stay(branch, may), f"{told} {may}"
            else:
                assert objects is None or any(CONFLICT in some for some in may.values()), told
            self.unfinished -= 1
            return False
        objects = plain()
        assert objects is not None, f"{what} into {branch}: plain objects are in conflict"
        landed = self.settle(branch, allowed(), objects)
        event(f"{what}: {'landed' if landed else 'nothing to do'}")
        self.unfinished -= 1
        return landed

    def may_stay(self, branch: str, allowed: Allowed) -> bool:
        """Whether each table may be as it is."""
        before = self.head(branch).tables
        stays = ((new_versions(before.get(path), one) == {} for one in some if one) for path, some in allowed.items())
        return all(any(one) for one in stays)

    def settle(self, branch: str, allowed: Allowed, plain: Mapping[str, str]) -> bool:
        """Looks at what a branch holds now, and learns it; whether it moved."""
        ref, before = self.repo.ref(branch), self.head(branch)
        if ref.get_commit().id == self.heads[branch]:
            assert self.may_stay(branch, allowed), f"{branch} has not moved: {allowed}"
            return False
        tables, objects = find_content(ref)
        assert objects == plain
        logs: dict[str, Log] = {}
        for path in {*tables, *before.tables, *allowed}:
            some = allowed.get(path, [Becomes(before.tables.get(path))])
            log = self.match(f"{ref.store_uri(path)}", tables.get(path), [one for one in some if one])
            if log is not None:
                logs[path] = log
        self.learn(branch, Content(logs, objects))
        self.check(branch)
        return True

    def match(self, uri: str, found: Log | None, some: list[Becomes]) -> Log | None:
        """What was found, if it is one of the things that it may be; the rows of its new versions are known then."""
        misses = []
        for one in some:
            added = new_versions(found, one)
            if added is None or found is None:
                if added is not None:
                    return None
                misses.append(f"the log {found} for {one}")
                continue
            told = {n: read_rows(uri, found.format, n) for n in added}
            if told == added:
                self.rows |= {found.entries[n]: rows for n, rows in added.items()}
                return learned(found, one)
            misses.append(f"the rows {told} for {added}")
        raise AssertionError(f"{uri}: {found} may not be: {misses or 'it was to be refused'}")

    def learn(self, branch: str, content: Content) -> None:
        """Learns a branch's new commits; one that was made on the way holds what it holds."""
        commit = self.repo.ref(branch).get_commit()
        # Known already, where two branches have made the same commit.
        self.contents[commit.id] = content
        head = commit.id
        while commit.id != self.heads[branch]:
            assert commit.parents, "the branch has lost commits"
            self.parents[commit.id] = commit.parents
            if commit.id not in self.contents:
                tables, plain = find_content(self.repo.ref(commit.id))
                logs = {path: learned(log, Becomes(log, is_cleaned=True)) for path, log in tables.items()}
                self.contents[commit.id] = Content(logs, plain)
            commit = self.repo.ref(commit.parents[0]).get_commit()
        self.heads[branch] = head

    def check(self, ref: str) -> None:
        """Every table of a ref opens, at every version that can be read."""
        for path, log in self.contents[(self.heads | self.tags)[ref]].tables.items():
            uri = self.repo.ref(ref).store_uri(path)
            assert read_rows(uri, log.format) == self.rows[log.newest], (ref, path)
            readable = sorted(n for n, sum in log.entries.items() if sum in log.readable)
            for version in {*readable[:1], *readable[-3:]}:
                assert read_rows(uri, log.format, version) == self.rows[log.entries[version]], (ref, path, version)

    # Changes of tables.

    @rule(
        branch=BRANCHES,
        steps=st.lists(STEPS, min_size=1, max_size=4),
        plain=PLAIN,
        meanwhile=st.none() | st.tuples(MEANWHILE, STEPS, BRANCHES),
    )
    def transact(
        self, branch: str, steps: list[Step], plain: dict[str, str], meanwhile: tuple[str, Step, str] | None
    ) -> None:
        """Several versions of several tables at once, while others may come between."""
        if branch not in self.heads:
            return
        began = self.head(branch)
        changes = {path: TableChange.of(began.tables.get(path), self.rows) for path in TABLES}
        told: dict[str, tuple[int, ...]] = {}

        def work() -> None:
            with self.repo.branch(branch).transact("change") as tx:
                for step in steps:
                    self.step(step, tx, changes)
                for path, text in plain.items():
                    tx.object(path).upload(text)
                if meanwhile is not None:
                    self.come_between(branch, *meanwhile)
            told.update(tx.versions)

        def allowed() -> Allowed:
            now = self.head(branch).tables
            alone = self.head(branch) is began
            return {path: change.over(now.get(path), self.rows, is_alone=alone) for path, change in changes.items()}

        def objects() -> Mapping[str, str] | None:
            # A reset or the same upload by another: three sides, as in a merge.
            texts = {path: checksum(text) for path, text in plain.items()}
            return merged_plain(began.plain, {**began.plain, **texts}, self.head(branch).plain, None)

        what = "transaction" if meanwhile is None else f"transaction ({meanwhile[0]})"
        if self.attempt(what, branch, work, allowed, objects):
            for path, change in changes.items():
                if change.steps and not change.is_cleaned and not change.is_replaced:
                    last = max(self.head(branch).tables[path].entries)
                    assert told.get(path) == tuple(range(last - len(change.steps) + 1, last + 1)), (path, told)

    def step(self, step: Step, tx: Any, changes: dict[str, TableChange]) -> bool:
        """One step on a transaction or on a branch."""

        def drop() -> None:
            tx.delete_objects([one.path for one in tx.objects(prefix=f"{step.path}/")])

        return do(step, tx.store_uri(step.path), changes[step.path], drop)

    def come_between(self, branch: str, how: str, step: Step, other: str) -> None:
        """Another handle is faster."""
        mine, self.repo = self.repo, repository(self.repo.uri)
        try:
            if how == "live":
                self.live(branch, step)
            elif how == "transaction":
                self.transact(branch, [step, Step("append", "lake/c", 1)], {"plain/q": "3"}, None)
            elif how == "merge":
                self.merge(other, branch, None, squash=False)
            elif how == "reset":
                self.reset(branch, 1)
        finally:
            self.repo = mine

    @rule(branch=BRANCHES, step=STEPS)
    def live(self, branch: str, step: Step) -> None:
        """A change of a table outside of a transaction: a commit of the repository by itself."""
        if branch not in self.heads:
            return
        handle, began = self.repo.branch(branch), self.head(branch)
        change = TableChange.of(began.tables.get(step.path), self.rows)

        def work() -> None:
            if self.step(step, handle, {step.path: change}) and step.verb == "drop":
                handle.commit("drop")

        head = self.heads[branch]
        if self.attempt(
            f"live {step.verb}", branch, work, lambda: {step.path: [change.becomes()]}, lambda: began.plain
        ):
            assert step.verb == "clean" or self.parents[self.heads[branch]] == (head,)

    @rule(branch=BRANCHES, path=st.sampled_from(TABLES))
    def hold(self, branch: str, path: str) -> None:
        """A handle that is kept while others change what it is on."""
        log = self.head(branch).tables.get(path) if branch in self.heads else None
        if log is not None:
            uri = self.repo.branch(branch).store_uri(path)
            handle = esker.dataset(uri) if log.format == "lance" else DeltaTable(uri)
            self.held.append((branch, path, log, handle))

    @rule(which=st.integers(0, 5), write=st.booleans())
    def use_held(self, which: int, write: bool) -> None:
        """It reads what is there now or says that it is another; what it appends lands there or nowhere."""
        if which >= len(self.held):
            return
        branch, path, log, handle = self.held[which]
        now = self.head(branch).tables.get(path) if branch in self.heads else None
        goes_on = now is not None and now.format == log.format and log.newest in now.entries.values()
        ids = fresh_ids(2)
        try:
            if write and log.format == "lance":
                esker.write_dataset(rows_of(ids), handle, mode="append")
            elif write:
                write_deltalake(handle, rows_of(ids), mode="append")
            elif log.format == "lance":
                handle.checkout_latest()
            else:
                handle.update_incremental()
        except EskerError as error:
            event(f"held: {type(error).__name__}")
            # Who writes may meet what others have written; who reads goes on to it.
            unchanged = now is not None and now.newest == log.newest
            if unchanged or (goes_on and not (write and isinstance(error, CommitConflictError))):
                raise AssertionError(f"held table of {branch}: {now} after {log}") from error
            assert branch not in self.heads or self.repo.ref(branch).get_commit().id == self.heads[branch]
            self.held.pop(which)
            return
        event("held: landed" if write else "held: read")
        assert now is not None
        assert now.format == log.format
        rows = self.rows[now.newest]
        if write:
            rows = tuple(sorted(rows + ids))
            assert self.settle(branch, {path: [Becomes(now, (rows,))]}, self.head(branch).plain)
        found = handle.to_table() if log.format == "lance" else handle.to_pyarrow_table()
        if not write:
            assert tuple(sorted(found["id"].to_pylist())) == rows
        self.held[which] = (branch, path, self.head(branch).tables[path], handle)

    # Changes of branches.

    @rule(source=BRANCHES, dest=BRANCHES, strategy=STRATEGIES, squash=st.booleans())
    def merge(self, source: str, dest: str, strategy: str | None, squash: bool) -> None:
        if source not in self.heads or dest not in self.heads:
            return
        base = self.repo.ref(dest).merge_base(source)
        assert base is not None
        was, mine, other = self.contents[base.id], self.head(source), self.head(dest)
        heads = self.heads[source], self.heads[dest]
        allowed = {
            path: merged_table(
                was.tables.get(path),
                mine.tables.get(path),
                other.tables.get(path),
                strategy,
                self.rows,
                partial(self.known, path, *heads),
            )
            for path in {*mine.tables, *other.tables}
        }
        self.attempt(
            f"merge ({strategy})",
            dest,
            lambda: self.repo.branch(source).merge_into(dest, strategy=strategy, squash_merge=squash),
            lambda: allowed,
            lambda: merged_plain(was.plain, mine.plain, other.plain, strategy),
        )

    def known(self, path: str, *heads: str) -> tuple[Log, Log]:
        """A table's logs on two commits, with what the commits before them had."""
        source, dest = (
            completed(self.contents[head].tables[path], list(self.older_logs(head, path))) for head in heads
        )
        return source, dest

    def older_logs(self, head: str, path: str) -> Iterator[Log]:
        """The logs that a table has had on the way to a commit."""
        left, seen = list(self.parents[head]), set[str]()
        while left:
            id = left.pop()
            if id in seen or id not in self.contents:
                continue
            seen.add(id)
            left += self.parents[id]
            log = self.contents[id].tables.get(path)
            if log is not None:
                yield log

    @rule(source=BRANCHES, dest=BRANCHES, back=st.integers(0, 2), pick=st.booleans())
    def transplant(self, source: str, dest: str, back: int, pick: bool) -> None:
        """A commit is done again on another branch, or taken back on its own."""
        source = source if pick else dest
        if source not in self.heads or dest not in self.heads:
            return
        id = self.before(self.heads[source], back)
        if not self.parents[id]:
            return
        was, done, now = self.contents[self.parents[id][0]], self.contents[id], self.head(dest)
        before, after = (was, done) if pick else (done, was)
        allowed = {
            path: transplanted_table(before.tables.get(path), after.tables.get(path), now.tables.get(path), self.rows)
            for path in {*before.tables, *after.tables, *now.tables}
        }
        number = 1 if len(self.parents[id]) > 1 else 0
        handle = self.repo.branch(dest)
        self.attempt(
            "cherry-pick" if pick else "revert",
            dest,
            lambda: handle.cherry_pick(id, number) if pick else handle.revert(id, number),
            lambda: allowed,
            lambda: merged_plain(before.plain, after.plain, now.plain, None),
        )

    def before(self, id: str, back: int) -> str:
        for _ in range(back):
            id = self.parents[id][0] if self.parents[id] else id
        return id

    @rule(branch=BRANCHES, back=st.integers(1, 3))
    def reset(self, branch: str, back: int) -> None:
        if branch in self.heads:
            self.heads[branch] = self.before(self.heads[branch], back)
            self.repo.branch(branch).reset_to(self.heads[branch])
            self.check(branch)

    @rule(what=st.sampled_from(HOUSEKEEPING), branch=BRANCHES, other=BRANCHES)
    def keep_house(self, what: str, branch: str, other: str) -> None:
        if what == "delete" and branch in self.heads and branch != "main":
            self.repo.branch(branch).delete()
            del self.heads[branch]
        elif what == "tag" and branch in self.heads and other not in self.tags:
            name = f"tag-{len(self.tags)}"
            self.repo.tag(name).create(branch)
            self.tags[name] = self.heads[branch]
        elif what == "collect":
            # All that no ref leads to goes, however young.
            self.repo.gc(dry_run=False, grace_s=-3600)
        elif what == "open again":
            self.repo = repository(self.repo.uri)
        elif what == "peers" and branch in self.heads:
            self.check_peers(branch)
        for name in NAMES:
            # What was deleted is soon made anew, elsewhere.
            if name not in self.heads and other in self.heads:
                self.create_branch(name, other)

    def create_branch(self, branch: str, source: str) -> None:
        self.repo.branch(branch).create(source)
        self.heads[branch] = self.heads[source]

    def check_peers(self, ref: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.repo.ref(ref).export(folder)
            for path, log in self.contents[(self.heads | self.tags)[ref]].tables.items():
                assert peers_rows(Path(folder, path), log.format) == self.rows[log.newest], (ref, path)

    def teardown(self) -> None:
        if not hasattr(self, "repo") or self.unfinished:
            return
        for branch, head in self.heads.items():
            assert self.repo.ref(branch).get_commit().id == head, branch
        for ref in {**self.heads, **self.tags}:
            self.check(ref)
            self.check_peers(ref)
        assert list(repository(self.repo.uri).fsck(tables=True)) == []


def checksum(text: str) -> str:
    """An object's, by its text."""
    import hashlib

    return hashlib.md5(text.encode()).hexdigest()


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits pack and join packs every now and then, so that a short history has some."""
    monkeypatch.setattr(ref_move, "PACK_COMMITS", 3)
    monkeypatch.setattr(ref_move, "UPKEEP_EVERY", 4)
    monkeypatch.setattr(commit_packs, "JOINED", 2)


TestTablesOnBranches = TablesMachine.TestCase
TestTablesOnBranches.settings = settings(
    max_examples=int(os.environ.get("ESKER_MODEL_EXAMPLES", "20")),
    stateful_step_count=int(os.environ.get("ESKER_MODEL_STEPS", "30")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
