"""A plain model of tables on branches: a table is a log, a log is a map of versions to checksums, a merge is a table.

Nothing here asks the repository how it sees tables: logs are read off its listing, their entries by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pyarrow as pa

import esker
from esker.delta import DeltaTable, write_deltalake
from esker.repo import Reference

Format: TypeAlias = Literal["lance", "delta"]
Rows: TypeAlias = tuple[int, ...]
"""The ids of a table's rows, sorted; one that is there twice is there twice."""
_LOG = re.compile(r"(?:(.*)/)?(_versions/(\d+)\.manifest|_delta_log/(\d{20})\.json)")
_NEWEST_FIRST = 2**64 - 1


@dataclass(frozen=True)
class Log:
    """A table on a ref.

    Attributes:
        format: Its format.
        entries: The checksums of its log's entries, by version.
        readable: Which of them no clean-up has taken the files of.
    """

    format: Format
    entries: Mapping[int, str] = field(default_factory=dict)
    readable: frozenset[str] = frozenset()

    @property
    def newest(self) -> str:
        """The checksum of the newest version."""
        return self.entries[max(self.entries)]


@dataclass(frozen=True)
class Content:
    """What a commit holds: its tables by their paths, and plain objects."""

    tables: Mapping[str, Log] = field(default_factory=dict)
    plain: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Becomes:
    """What is to become of a table.

    Attributes:
        log: Its log as it was or is taken; None if there is no table.
        added: The rows of the versions that come on top, one after the other.
        is_cleaned: Whether old versions may go.
    """

    log: Log | None
    added: tuple[Rows, ...] = ()
    is_cleaned: bool = False


CONFLICT = None
"""What a table becomes that cannot take a change: the whole change is refused."""


def find_content(ref: Reference) -> tuple[dict[str, Log], dict[str, str]]:
    """The logs of a ref's tables, and its objects outside of them, as the repository lists them."""
    listed: list[Any] = list(ref.objects())
    entries: dict[str, dict[int, str]] = {}
    formats: dict[str, Format] = {}
    for one in listed:
        if found := _LOG.fullmatch(one.path):
            table, _, lance, delta = found.groups()
            version = _NEWEST_FIRST - int(lance) if lance else int(delta)
            entries.setdefault(table, {})[version] = one.checksum
            assert formats.setdefault(table, "lance" if lance else "delta") == ("lance" if lance else "delta"), table
    tables = {path: Log(formats[path], found) for path, found in entries.items()}
    plain = {one.path: one.checksum for one in listed if one.path.startswith("plain/")}
    below = tuple(f"{path}/" for path in (*tables, "plain"))
    left = [one.path for one in listed if not one.path.startswith(below)]
    assert left == [], "this is left of a table that is gone"
    return tables, plain


def read_rows(uri: str, format: Format, version: int | None = None) -> Rows:
    """A table's rows."""
    if format == "lance":
        found = esker.dataset(uri, version=version).to_table()
    else:
        found = DeltaTable(uri, version=version).to_pyarrow_table()
    return tuple(sorted(found["id"].to_pylist()))


def rows_of(ids: Iterable[int]) -> pa.Table:
    """Rows of these ids."""
    listed = list(ids)
    return pa.table({"id": pa.array(listed, pa.int64()), "v": pa.array([f"row {n}" for n in listed])})


def peers_rows(folder: Path, format: Format) -> Rows:
    """A table's rows as its format's own library reads them."""
    import deltalake
    import lance

    if format == "lance":
        found = lance.dataset(str(folder)).to_table()
    else:
        found = deltalake.DeltaTable(str(folder)).to_pyarrow_table()
    return tuple(sorted(found["id"].to_pylist()))


def write(
    uri: str, format: Format, ids: Iterable[int], mode: Any, storage_options: dict[str, str] | None = None
) -> None:
    """Writes rows: `create`, `append` or `overwrite`."""
    if format == "lance":
        esker.write_dataset(rows_of(ids), uri, mode=mode, storage_options=storage_options)
    else:
        mode = "error" if mode == "create" else mode
        write_deltalake(uri, rows_of(ids), mode=mode, storage_options=storage_options)


def relation(source: Log, dest: Log) -> str:
    """`same`, `extends`, `behind`, `parted` or `unknown`: how the source's log stands to the destination's."""
    common = source.entries.keys() & dest.entries.keys()
    if source.format != dest.format or any(source.entries[n] != dest.entries[n] for n in common):
        return "parted"
    ours, theirs = max(source.entries), max(dest.entries)
    if ours == theirs:
        return "same"
    if ours > theirs:
        return "extends" if theirs in source.entries else "unknown"
    return "behind" if ours in dest.entries else "unknown"


def completed(log: Log, older: Iterable[Log]) -> Log:
    """A log with the entries that it had before clean-ups: those of older ones that it goes on from."""
    left = [one for one in older if one.format == log.format]
    while found := [one for one in left if log.entries.get(max(one.entries)) == one.newest]:
        for one in found:
            left.remove(one)
            log = replace(log, entries={**one.entries, **log.entries})
    return log


def united(source: Log, dest: Log) -> Log:
    """A side that is taken whole: all that the destination has, and the source's on top."""
    newest = max(dest.entries)
    # What the destination has cleaned up stays away.
    new = {version: sum for version, sum in source.entries.items() if version > newest}
    readable = dest.readable | (source.readable & frozenset(new.values()))
    return Log(dest.format, {**dest.entries, **new}, readable)


def merged_table(
    base: Log | None,
    source: Log | None,
    dest: Log | None,
    strategy: str | None,
    rows: Mapping[str, Rows],
    known: Callable[[], tuple[Log, Log]],
) -> list[Becomes | None]:
    """What a merge may make of a table; the first is what is expected, further ones are allowed.

    `known` is asked for both sides' logs as their history tells them, where a clean-up took what would tell.
    """
    if source == dest:
        return [Becomes(dest)]
    if source is None:
        assert dest is not None
        if base is None:
            return [Becomes(dest)]
        if relation(dest, base) == "same":
            return [Becomes(None)]
        if dest.format != base.format:
            # Both have dropped the table, and the destination has made one of another format.
            return [Becomes(dest), CONFLICT]
        return [Becomes(dest)] if strategy == "dest-wins" else [CONFLICT]
    if dest is None:
        if base is None:
            return [Becomes(source)]
        if relation(source, base) == "same":
            return [Becomes(None)]
        if source.format != base.format:
            return [Becomes(source), Becomes(None), CONFLICT]
        return [{None: CONFLICT, "dest-wins": Becomes(None), "source-wins": Becomes(source)}[strategy]]
    if base is not None and relation(source, base) == "same":
        return [Becomes(dest), CONFLICT] if source.format != dest.format else [Becomes(dest)]
    found = relation(source, dest)
    if found == "unknown":
        found = relation(*known())
    if found in ("same", "behind"):
        return [Becomes(dest)]
    if found == "extends":
        # The versions between are nowhere where the source has cleaned them up.
        return [Becomes(united(source, dest))]
    if strategy == "dest-wins":
        return [Becomes(dest)]
    if strategy == "source-wins" and base is not None and source.format == dest.format:
        return [Becomes(dest, (rows[source.newest],)), CONFLICT]
    return [CONFLICT]


def merged_plain(
    base: Mapping[str, str], source: Mapping[str, str], dest: Mapping[str, str], strategy: str | None
) -> dict[str, str] | None:
    """A three-way merge of plain objects; None for a conflict."""
    result: dict[str, str] = {}
    for path in {*base, *source, *dest}:
        was, mine, other = base.get(path), source.get(path), dest.get(path)
        if mine != other and was not in (mine, other):
            if strategy is None:
                return None
            taken = mine if strategy == "source-wins" else other
        else:
            taken = other if mine == was else mine
        if taken is not None:
            result[path] = taken
    return result


def changed_rows(before: Rows, after: Rows, now: Rows) -> Rows:
    """The rows of now with what has come and without what has gone between two versions."""
    left = list(now)
    for id in before:
        if id not in after and id in left:
            left.remove(id)
    return tuple(sorted([*left, *(id for id in after if id not in before)]))


def transplanted_table(
    before: Log | None, after: Log | None, now: Log | None, rows: Mapping[str, Rows]
) -> list[Becomes | None]:
    """What doing the change between two versions of a table to a third one may make of it."""
    if before == after:
        return [Becomes(now)]
    if before and after and relation(after, before) == "same":
        # A clean-up.
        return [Becomes(now), CONFLICT]
    if before is None:
        assert after is not None
        if now is None:
            return [Becomes(after)]
        if relation(after, now) in ("same", "behind"):
            return [Becomes(now), CONFLICT]
        return [CONFLICT]
    if after is None:
        if now is None:
            return [Becomes(None)]
        return [Becomes(None) if relation(now, before) == "same" else CONFLICT, CONFLICT]
    if now is None:
        return [CONFLICT]
    if now.format != before.format or before.format != after.format:
        return [CONFLICT]
    taken = [Becomes(united(after, now))] if relation(after, now) == "extends" else []
    if relation(now, before) == "same":
        idle = [Becomes(now)] if rows[after.newest] == rows[now.newest] else []
        return [*taken, *idle, Becomes(now, (rows[after.newest],)), CONFLICT]
    changed = changed_rows(rows[before.newest], rows[after.newest], rows[now.newest])
    return [*taken, Becomes(now, (changed,)), Becomes(now), CONFLICT]


def new_versions(found: Log | None, expected: Becomes) -> dict[int, Rows] | None:
    """The new versions of a log that was found, with the rows they are to have; None if it is not the expected one."""
    if found is None or (expected.log is None and not expected.added):
        return {} if found is None and expected.log is None and not expected.added else None
    base = expected.log or Log(found.format)
    start = max(base.entries) + 1 if base.entries else int(found.format == "lance")
    added = {start + n: rows for n, rows in enumerate(expected.added)}
    there, wanted = found.entries.keys(), base.entries.keys() | added.keys()
    if found.format != base.format or max(there) != max(wanted) or not there <= wanted:
        return None
    if not expected.is_cleaned and there != wanted:
        return None
    if any(found.entries[n] != sum for n, sum in base.entries.items() if n in there):
        return None
    return {n: rows for n, rows in added.items() if n in there}


def learned(found: Log, expected: Becomes) -> Log:
    """The log that was found, with what is known of which versions can be read."""
    base = expected.log or Log(found.format)
    new = {sum for n, sum in found.entries.items() if n not in base.entries}
    readable = {found.newest} if expected.is_cleaned else base.readable | new
    return replace(found, readable=frozenset(readable) & frozenset(found.entries.values()))
