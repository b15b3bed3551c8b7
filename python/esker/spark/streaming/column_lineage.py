"""Which column of a Lance table is which, from version to version.

Versions are a tree: the columns of one are those of its parent, which is the version before it, or the one that it
restores. What happened between that one and the restore is a branch, whose columns are found over their common
ancestor. Over versions that were cleaned up names are all that is known.
"""

from __future__ import annotations

from bisect import bisect_left

from esker._native.schema import Schema
from esker._native.table import Transaction
from esker.exceptions import NotFoundError
from esker.lance import LanceLog
from esker.spark.streaming.version_columns import Followed, back, earlier, followed, through

__all__ = ["ColumnLineage"]

_NUMBERED_ANEW = ("Overwrite", "Restore", "Clone")
"""After these a field's id may be that of another one; a restore whose version is gone is one of them."""


class ColumnLineage:
    """The columns of the versions of a table.

    Args:
        log: The table's.
        version: The version with which a query was started.
        schema: Its columns.
    """

    def __init__(self, log: LanceLog, version: int, schema: Schema) -> None:
        self._log = log
        self._schemas: dict[int, Schema | None] = {version: schema}
        self._steps: dict[int, tuple[int, tuple[Followed, ...]] | None] = {}
        # The ancestors of the version, and what each of them calls its columns.
        self._chain: dict[int, tuple[Followed, ...]] = {version: followed(schema.fields)}
        self._last = version

    def schema(self, version: int) -> Schema | None:
        """The columns of a version, None if it was cleaned up."""
        if version not in self._schemas:
            try:
                self._schemas[version] = self._log.open(version)[0].schema
            except NotFoundError:
                self._schemas[version] = None
        return self._schemas[version]

    def origins(self, version: int) -> tuple[Followed, ...]:
        """What an older version calls the columns with which the query was started; without those that it lacks."""
        schema = self._known(version)
        down = followed(schema.fields)
        at = version
        while True:
            while self._last > at and (step := self._parent(self._last)) is not None:
                self._chain[step[0]] = through(self._chain[self._last], step[1])
                self._last = step[0]
            found = self._chain.get(at)
            if found is not None:
                return through(found, back(down, schema.fields))
            above = self._parent(at)
            if above is None:
                return ()
            at, down = above[0], through(down, above[1])

    def between(self, version: int) -> tuple[Followed, ...]:
        """What the version before one calls the columns of it."""
        at, other = version, version - 1
        fields = self._known(other).fields
        up, down = followed(self._known(at).fields), followed(fields)
        while at != other:
            step = self._parent(max(at, other))
            if step is None:
                return ()
            if at > other:
                at, up = step[0], through(up, step[1])
            else:
                other, down = step[0], through(down, step[1])
        return through(up, back(down, fields))

    def _known(self, version: int) -> Schema:
        schema = self.schema(version)
        if schema is None:
            raise NotFoundError(f"version {version} of {self._log.uri} was cleaned up", version=version)
        return schema

    def _parent(self, version: int) -> tuple[int, tuple[Followed, ...]] | None:
        """The parent of a version, and what it calls the version's columns; None if no older version is left."""
        if version not in self._steps:
            self._steps[version] = self._found_parent(version, self._known(version))
        return self._steps[version]

    def _found_parent(self, version: int, schema: Schema) -> tuple[int, tuple[Followed, ...]] | None:
        before = self.schema(version - 1) if version > 1 else None
        if before == schema:
            return version - 1, followed(schema.fields)
        transaction = self._transaction(version)
        if transaction is not None and transaction.operation == "Restore":
            restored: int = transaction.decoded().fields()["version"]
            if 0 < restored < version and self.schema(restored) == schema:
                return restored, followed(schema.fields)
        if before is not None:
            by_ids = transaction is not None and transaction.operation not in _NUMBERED_ANEW
            return version - 1, earlier(followed(schema.fields), schema.fields, before.fields, by_ids=by_ids)
        # Whatever happened in those that were cleaned up, names are all that is known.
        versions = sorted(self._log.listing().versions)
        for older in reversed(versions[: bisect_left(versions, version)]):
            there = self.schema(older)
            if there is not None:
                return older, earlier(followed(schema.fields), schema.fields, there.fields, by_ids=False)
        return None

    def _transaction(self, version: int) -> Transaction | None:
        try:
            return self._log.transaction(self._log.open(version)[0])
        except NotFoundError:
            return None
