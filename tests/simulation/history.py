"""The history of a table, read version by version and compared with what its writers did."""

from __future__ import annotations

import esker
from esker.lance.log import LanceLog
from tests.simulation.model import Change, Rows, State, computed, factor, require, shown

NO_VERSIONS = ("read_rows", "cleanup", "detached", "tag", "branch", "delete_branch")
"""Changes that make no version of the history."""
MANY_VERSIONS = ("compact", "plan_and_compact")
"""Changes that may make several versions, or none, each of which leaves the rows as they were."""


class TableHistory:
    """All versions of a table.

    Args:
        uri: The table.
        storage_options: Options of its store.
        has_holes: Whether versions may be gone.
        first: The first version: that of a branch is the one that it starts from.
    """

    def __init__(
        self, uri: str, *, storage_options: dict[str, str] | None = None, has_holes: bool = False, first: int = 1
    ) -> None:
        self.uri = uri
        self.first = first
        self.storage_options = storage_options
        self.log = LanceLog.at(uri, storage_options=storage_options)
        self.listing = self.log.listing()
        self.latest = self.listing.latest
        self.states: dict[int, State] = {}
        if not has_holes:
            require(self.listing.versions == tuple(range(first, self.latest + 1)), f"versions {self.listing.versions}")

    def read(self) -> None:
        """Reads every version that is there."""
        for version in self.listing.versions:
            self.states[version] = self.state(version)

    def state(self, version: int) -> State:
        """A version as a reader sees it."""
        dataset = esker.dataset(self.uri, version=version, storage_options=self.storage_options)
        rows = dataset.to_table()
        keys = rows["id"].to_pylist()
        require(len(set(keys)) == len(keys), f"version {version}: a row is there twice: {sorted(keys)}")
        for name in computed(rows.column_names):
            values = zip(keys, rows[name].to_pylist(), strict=True)
            wrong = {key: value for key, value in values if value not in (None, key * factor(name))}
            require(not wrong, f"version {version}: column {name} has another one's values: {wrong}")
        # How far field ids have come is nobody's setting.
        config = {key: value for key, value in dataset.config().items() if key != "esker.max_field_id"}
        return State(dict(zip(keys, rows["n"].to_pylist(), strict=True)), tuple(rows.column_names), config)

    def check(self, changes: list[Change], seen: list[tuple[int, Rows]]) -> None:
        """Compares the versions with what the writers did.

        Args:
            changes: All that was tried.
            seen: What readers saw: versions and their rows.

        Raises:
            Violation: A version is not the one before plus exactly one change, or a change is lost or there twice.
        """
        made = self._makers(changes)
        single = [change for change in made.values() if change.kind not in MANY_VERSIONS]
        landed = {id(change) for change in made.values()}
        require(len({id(change) for change in single}) == len(single), "a change is there twice")
        for change in changes:
            if change.kind in MANY_VERSIONS:
                require(change.outcome != "under way", f"{change} came to no end")
            elif change.kind in NO_VERSIONS:
                require(id(change) not in landed, f"{change} made a version")
            elif change.outcome in ("refused", "nothing to do"):
                require(id(change) not in landed, f"{change} was refused, and is visible")
            elif change.outcome == "done":
                require(id(change) in landed, f"{change} is lost")
            else:
                require(change.outcome == "unknown", f"{change} came to no end")
        for version, rows in seen:
            require(rows == self.states[version].rows, f"a reader saw {rows} as version {version}")

    def check_tags(self) -> None:
        """Checks that each tag shows the version that it names, whatever was cleaned up."""
        for name, tag in esker.dataset(self.uri, storage_options=self.storage_options).tags.list().items():
            shown = esker.dataset(self.uri, version=name, storage_options=self.storage_options)
            require(shown.version == tag["version"], f"tag {name} shows version {shown.version}, expected {tag}")
            require(self.state(shown.version) is not None, f"tag {name} shows nothing")

    def _makers(self, changes: list[Change]) -> dict[int, Change]:
        """By version the change that made it, each checked against the version before."""
        by_transaction = {name: change for change in changes for name in change.transactions}
        made: dict[int, Change] = {}
        for version in range(self.first, self.latest + 1):
            manifest = self.log.manifest(version, self.listing.scheme)
            if version not in self.states:
                self.states[version] = self.state(version)
            if version == self.first:
                continue
            change = by_transaction.get(manifest.transaction_file or "")
            require(change is not None, f"version {version} is nobody's: {manifest.transaction_file}")
            assert change is not None
            transaction = self.log.transaction(manifest)
            require(transaction is not None, f"the transaction of version {version} is gone")
            assert transaction is not None
            before, snapshot = self.states[version - 1], self.states[transaction.read_version]
            expected = change.expected(before, snapshot, self.states)
            require(
                expected == self.states[version],
                f"version {version} by {change}: expected {shown(expected)}, found {shown(self.states[version])}, "
                f"before {shown(before)}, read version {transaction.read_version}",
            )
            made[version] = change
        return made
