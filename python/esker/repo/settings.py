"""Settings of a repository, which all of its users share; they change by a log of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from .._native.graveler import SplitRule
from ..exceptions import CorruptFileError, InvalidArgumentError
from .refs.atomic_objects import AtomicObjects
from .refs.layout import SETTINGS
from .refs.numbered_log import LogEntry, NumberedLog
from .refs.ref_commit import append

_MOST = 1 << 63
_FIT = {
    "min_range_size": "a number of bytes",
    "max_range_size": "a number of bytes",
    "raggedness": "a number of entries",
    "protected_branches": "a list of patterns",
    "retention_days": "days, 0 or more,",
    "branch_retention_days": "days by branch",
    "grace_s": "seconds, 0 or more,",
}


@dataclass(frozen=True)
class Settings:
    """What a repository's users have agreed on. None of it needs a rewrite of what is there.

    Attributes:
        min_range_size: Bytes before which no range ends.
        max_range_size: Bytes at which each ends.
        raggedness: Entries that a range has on average, beyond the least size.
        protected_branches: Patterns of names (`fnmatch`) to which only merges lead, for clients of esker.
        retention_days: Days for which garbage collection keeps what is no branch's content any more.
        branch_retention_days: The same by branch.
        grace_s: Seconds for which garbage collection deletes nothing, and after which nothing staged is committed.

    Example:
        >>> from esker.repo.settings import Settings
        >>> Settings(raggedness=1000).rule().max_size
        20971520
    """

    min_range_size: int = 0
    max_range_size: int = 20 << 20
    raggedness: int = 50_000
    protected_branches: tuple[str, ...] = ()
    retention_days: int = 21
    branch_retention_days: Mapping[str, int] = field(default_factory=dict)
    grace_s: float = 24 * 3600.0

    def rule(self) -> SplitRule:
        """Where ranges end.

        Raises:
            InvalidArgumentError: No range could ever end so.
        """
        return SplitRule(min_size=self.min_range_size, max_size=self.max_range_size, raggedness=self.raggedness)


class SettingsLog:
    """The settings of one repository.

    Args:
        store: The repository's objects.
    """

    def __init__(self, store: AtomicObjects) -> None:
        self._log = NumberedLog(store, SETTINGS)

    def read(self) -> Settings:
        """The current settings; the defaults where none have been set."""
        return self._of(self._log.head())

    def change(self, **changes: Any) -> Settings:
        """Changes some settings and returns all.

        Raises:
            InvalidArgumentError: There is no such setting, or it makes no sense.
        """
        known = {setting.name for setting in fields(Settings)}
        unknown = set(changes) - known
        if unknown:
            raise InvalidArgumentError(f"expected settings among {sorted(known)}, found {sorted(unknown)}")

        def build(head: LogEntry | None) -> LogEntry:
            changed = Settings(**{**asdict(self._of(head)), **changes})
            for name, value in asdict(changed).items():
                if _has_bool(changes.get(name)) or not _is_fit(name, value):
                    raise InvalidArgumentError(f"expected {_FIT[name]} as {name}, found {value!r}")
            changed.rule()
            body = asdict(changed)
            body["protected_branches"] = list(changed.protected_branches)
            return LogEntry(0, "settings", body=body)

        return self._of(append(self._log, build, "change the settings"))

    def _of(self, entry: LogEntry | None) -> Settings:
        if entry is None:
            return Settings()
        known = {setting.name for setting in fields(Settings)}
        said = {name: value for name, value in entry.body.items() if name in known}
        path = self._log.path(entry.number)
        for name, value in said.items():
            if not _is_fit(name, value):
                raise CorruptFileError(f"{path}: expected settings, found {value!r} as {name}", path=path)
        said["protected_branches"] = tuple(said.get("protected_branches", ()))
        return Settings(**said)


def _has_bool(value: Any) -> bool:
    """Whether something holds a truth value, which Python takes for a number."""
    return any(isinstance(one, bool) for one in (value.values() if isinstance(value, Mapping) else [value]))


def _is_fit(name: str, value: Any) -> bool:
    if name == "protected_branches":
        return isinstance(value, list | tuple) and all(isinstance(pattern, str) for pattern in value)
    if name == "branch_retention_days":
        return isinstance(value, Mapping) and all(_is_fit("retention_days", days) for days in value.values())
    whole = int if name in ("min_range_size", "max_range_size", "raggedness") else int | float
    return isinstance(value, whole) and 0 <= value < _MOST
