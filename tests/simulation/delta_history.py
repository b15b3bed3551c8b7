"""The versions of a Delta table, each of which must be the one before and exactly the change that its writer made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from esker._native.store import Store
from esker.delta import DeltaTable
from esker.delta.log.changes import read_change
from tests.simulation.model import Change, Rows, State, require, shown

NO_VERSIONS = ("checkpoint", "clean_log", "read_rows", "vacuum")
"""Changes that write none."""


def rows_of(found: DeltaTable) -> Rows:
    """The rows of a version.

    Raises:
        Violation: One is there twice.
    """
    rows = found.to_pyarrow_table(columns=["id", "n"])
    keys = rows["id"].to_pylist()
    require(len(set(keys)) == len(keys), f"version {found.version()}: a row came twice: {sorted(keys)}")
    return dict(zip(keys, rows["n"].to_pylist(), strict=True))


class DeltaHistory:
    """The history of one table.

    Args:
        uri: Where it is.
        inner: Its store, without faults.
        options: Of its store.
    """

    def __init__(self, uri: str, inner: Store, options: dict[str, str] | None = None) -> None:
        self.inner = inner
        self._open = partial(DeltaTable, uri, storage_options=options)
        self.latest = self._open().version()
        self.states: dict[int, State] = {}

    def rows(self) -> Rows:
        """The newest version's rows."""
        return rows_of(self._open())

    def read(self) -> None:
        """Reads every version."""
        self.states = {version: self._state(version) for version in range(self.latest + 1)}

    def _state(self, version: int) -> State:
        found = self._open(version=version)
        config = {key: value for key, value in found.metadata().configuration.items() if key.startswith("custom.")}
        return State(rows_of(found), tuple(field.name for field in found.schema().fields), config)

    def check(self, changes: Sequence[Change], seen: Iterable[tuple[int, Rows]], newest: Rows) -> None:
        """Checks every version.

        Args:
            changes: All that writers tried.
            seen: What readers saw of which versions.
            newest: What the newest version was before anything was put back that a clean-up had taken.

        Raises:
            Violation: The history must not be.
        """
        states = self.states
        found = states[self.latest].rows
        require(found == newest, f"the newest version is {newest}, its log says {found}")
        made = self._makers(changes)
        landed = {id(change) for change in made.values()}
        require(len(landed) == len(made), "a change is there twice")
        for change in changes:
            if change.kind in NO_VERSIONS or change.idle is not None or change.outcome in ("refused", "nothing to do"):
                require(id(change) not in landed, f"{change} is visible")
            elif change.outcome == "done":
                require(id(change) in landed, f"{change} is lost")
            else:
                require(change.outcome == "unknown", f"{change} came to no end")
            if change.idle is not None:
                first, last = change.idle
                there = any(self._is_nothing(change, states[version]) for version in range(first, last + 1))
                require(there, f"{change} found nothing to do in versions {first} to {last}")
        for version, rows in seen:
            require(rows == states[version].rows, f"a reader saw {rows} as version {version}")

    def _is_nothing(self, change: Change, state: State) -> bool:
        return change.expected(state, state, self.states).rows == state.rows

    def _makers(self, changes: Sequence[Change]) -> dict[int, Change]:
        by_id = {write_id: change for change in changes for write_id in change.transactions}
        made: dict[int, Change] = {}
        for version in range(1, self.latest + 1):
            entry = read_change(self.inner, "", version)
            change = by_id.get(entry.write_id or "")
            require(change is not None, f"version {version} is nobody's: {entry.info}")
            assert change is not None
            before, snapshot = self.states[version - 1], self.states[entry.info["readVersion"]]
            expected = change.expected(before, snapshot, self.states)
            require(
                expected == self.states[version],
                f"version {version} by {change}: expected {shown(expected)}, found {shown(self.states[version])}, "
                f"before {shown(before)}, read version {entry.info['readVersion']}",
            )
            made[version] = change
        return made
