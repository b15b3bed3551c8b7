"""A log of numbered entries, each one object that is put if absent. Branches and settings change by it.

A writer that has read entry n as the last one puts entry n + 1. Entries are never replaced, and each holds the write id
of its writer: after a lost reply the writer reads the entry back and compares.

The last entry is found by probing upwards in steps that double, and start again at one after a miss. Probing starts at
the last entry that this process has seen, or else at the hint, or else at the last entry of a listing. There are no
gaps above the oldest kept entry, and nothing depends on a listing being complete.
"""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from ...exceptions import CorruptFileError, NotFoundError
from .atomic_objects import AtomicObjects
from .clock import Moment, elapsed_s, moment
from .json_record import WRONG, decode_json
from .layout import DIGITS, numbered

HINT = "hint"
OLD_SECONDS = 3600.0
"""An entry that was read longer ago is read again before anything is put after it."""
KEPT_ENTRIES = 100
"""The newest entries, which are never removed."""
KEPT_SECONDS = 7 * 24 * 3600.0
"""Entries younger than this are never removed."""


@dataclass(frozen=True)
class LogEntry:
    """One entry: its number, who wrote it, when, what it says; and when what it leads to was last looked at here."""

    number: int
    kind: str
    write_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    time: float = field(default_factory=time.time)
    body: dict[str, Any] = field(default_factory=dict)
    made: Moment = field(default_factory=moment, compare=False)

    @property
    def version(self) -> int:
        """The number, as the commit loop calls it."""
        return self.number

    def encode(self) -> bytes:
        """The object's bytes: JSON."""
        said = {"kind": self.kind, "write_id": self.write_id, "time": self.time, **self.body}
        return json.dumps(said, sort_keys=True, indent=1, ensure_ascii=False).encode()

    @classmethod
    def decode(cls, number: int, data: bytes, path: str) -> LogEntry:
        """Reads an object.

        Raises:
            CorruptFileError: It is no entry.
        """
        said = decode_json(data, path, "an entry of a log")
        try:
            kind, write_id, when = said.pop("kind"), said.pop("write_id"), said.pop("time")
            if not (isinstance(kind, str) and isinstance(write_id, str) and isinstance(when, int | float)):
                raise ValueError("kind, write_id or time of another type")
        except WRONG as error:
            raise CorruptFileError(f"{path}: expected an entry of a log, found {error!r}", path=path) from error
        return cls(number, kind, write_id, float(when), said)


class NumberedLog:
    """The entries in one folder.

    Args:
        store: The repository's objects.
        folder: The log's folder, ending in `/`.

    Attributes:
        held_up: How many puts were refused without asking the store, since what was known of the log was too old.

    Example:
        `NumberedLog(store, "_esker/settings/").head()`
    """

    def __init__(self, store: AtomicObjects, folder: str) -> None:
        self.store = store
        self.folder = folder
        self._last: LogEntry | None = None
        self._looked = moment()
        self._adopted = False
        self.held_up = 0

    def _is_old(self) -> bool:
        """Whether the last entry was read so long ago that it may be removed, and the numbers after it as well.

        By both clocks: one stands still while the machine sleeps, the other can be set.
        """
        return elapsed_s(self._looked) > OLD_SECONDS

    def adopt(self, entry: LogEntry) -> None:
        """Takes an entry that was read elsewhere as the last one seen, until an entry is put after it."""
        if self._last is None or self._last.number < entry.number:
            self._last, self._looked, self._adopted = entry, moment(), True

    def path(self, number: int) -> str:
        """The object of an entry."""
        return numbered(self.folder, number)

    def entry(self, number: int) -> LogEntry | None:
        """An entry, None if there is none of that number."""
        path = self.path(number)
        try:
            data = self.store.get(path)
        except NotFoundError:
            return None
        return LogEntry.decode(number, data, path)

    def head(self) -> LogEntry | None:
        """The last entry, None where there is none at all."""
        found = self._last
        if found is not None and self._is_old():
            found, self._adopted = self.entry(found.number), False
        for guess in (self._hinted, self._listed):
            if found is None and (number := guess()):
                found = self.entry(number)
        step = 1
        while True:
            following = self.entry((found.number if found else 0) + step)
            if following is not None:
                found, self._adopted = following, False
                step *= 2
            elif step == 1:
                break
            else:
                step = 1
        self._last, self._looked = found, moment()
        return found

    def hint(self, number: int) -> None:
        """Writes where a first reader starts to probe. It may be old, or missing."""
        self.store.put(self.folder + HINT, str(number).encode())

    def compact(self, keep: int = KEPT_ENTRIES, younger_than_s: float = KEPT_SECONDS, now: float | None = None) -> int:
        """Removes entries below the newest `keep` that are older than `younger_than_s` seconds; how many.

        A writer whose put was held up for longer than that could win a number that was freed: keep it long.

        Args:
            keep: So many stay.
            younger_than_s: Younger ones stay.
            now: The store's time, if it was asked already.

        Raises:
            IOFailedError: The clocks of this machine and of the store differ by more than an hour.
        """
        head = self.head()
        if head is None:
            return 0
        # By the store's clock: an entry never changes. One after the other, so that none is left below a gap.
        metas = {number_of(meta.path, self.folder): meta for meta in self.store.list(self.folder)}
        numbers = sorted(number for number in metas if 0 < number <= head.number - keep)
        if not numbers:
            return 0
        oldest_us = ((self.store.collecting_time() if now is None else now) - younger_than_s) * 1e6
        removed = 0
        for number in numbers:
            put_us = metas[number].last_modified_us
            if put_us is None or put_us > oldest_us:
                break
            self.store.delete(self.path(number))
            removed += 1
        return removed

    def put(self, number: int, data: bytes) -> bool:
        """Puts an entry if there is none of its number.

        False means that there is one, or that the last entry was read too long ago, or was adopted: the number may have
        been taken and freed since. The log has been read again then, and the entry must be made again.
        """
        if self._is_old():
            self.held_up += 1
            self.head()
            return False
        if self._adopted:
            self._adopted = False
            if self.entry(number - 1) is None:
                self.held_up += 1
                self._last = None
                self.head()
                return False
        return self.store.put_if_absent(self.path(number), data)

    def remove(self, number: int) -> None:
        """Removes an entry that no reader can have found."""
        self.store.delete(self.path(number))
        self._last = None

    def is_behind(self, number: int) -> bool:
        """Whether an entry lies below a gap, at a number that had been freed: readers do not find it there."""
        # A listing may miss new entries, but shows none that never existed.
        return self._listed() > number and self.entry(number + 1) is None

    def numbers(self) -> list[int]:
        """The numbers that a listing shows, rising: the newest may be missing from it."""
        return _numbers(self.store.list_paths(self.folder), self.folder)

    def _hinted(self) -> int:
        try:
            said = self.store.get(self.folder + HINT)
        except NotFoundError:
            return 0
        return int(said) if said.isdigit() and len(said) <= DIGITS else 0

    def _listed(self) -> int:
        numbers = self.numbers()
        return numbers[-1] if numbers else 0


def number_of(path: str, folder: str) -> int:
    """The number of an entry by its path; 0 for what is no entry."""
    name = path.removeprefix(folder)
    return int(name) if len(name) == DIGITS and name.isdigit() else 0


def _numbers(paths: list[str], folder: str) -> list[int]:
    return sorted(number for number in (number_of(path, folder) for path in paths) if number)
