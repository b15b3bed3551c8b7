"""Automatic clean-up: what the config of a table asks for after every so many versions, under pylance's keys."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypedDict

from ...commit.loop import follow
from ...exceptions import InvalidArgumentError
from ...store.staging import StagingStore
from ...store.stores import is_in_repository
from ..log import is_detached
from ..refs.branches import read_branches
from ..refs.contents import BranchContents
from ..refs.places import Place, log_of, main_log, table_at
from ..version import TableVersion
from .policy import CleanupPolicy
from .run import cleanup

PREFIX = "lance.auto_cleanup."
INTERVAL = f"{PREFIX}interval"
OLDER_THAN = f"{PREFIX}older_than"
DEFAULT_INTERVAL = 20
DEFAULT_OLDER_THAN = "14days"

_SECONDS = {
    **dict.fromkeys(("ns", "nsec"), 1e-9),
    **dict.fromkeys(("us", "usec"), 1e-6),
    **dict.fromkeys(("ms", "msec"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86_400),
    **dict.fromkeys(("w", "week", "weeks"), 7 * 86_400),
    **dict.fromkeys(("M", "month", "months"), 2_630_016),
    **dict.fromkeys(("y", "year", "years"), 31_557_600),
}
_PART = re.compile(r"\s*(\d+)\s*([a-zA-Z]+)\s*")


class AutoCleanupConfig(TypedDict, total=False):
    """When a table cleans itself up: the argument `auto_cleanup_options` of `write_dataset`."""

    interval: int
    older_than_seconds: int


def config_of(options: AutoCleanupConfig | None) -> dict[str, str]:
    """The config of a new table with these options.

    Raises:
        InvalidArgumentError: An option is negative, or unknown.

    Example:
        >>> from esker.lance.cleanup.automatic import config_of
        >>> config_of({"interval": 5})
        {'lance.auto_cleanup.interval': '5', 'lance.auto_cleanup.older_than': '14days'}
    """
    if options is None:
        return {}
    given: dict[str, Any] = {**options}
    for name, value in given.items():
        if name not in AutoCleanupConfig.__annotations__:
            raise InvalidArgumentError(
                f"expected auto_cleanup_options with interval and older_than_seconds, found {name!r}; set other keys "
                "by update_config"
            )
        if not hasattr(value, "__index__") or isinstance(value, bool) or value < 0:
            raise InvalidArgumentError(f"expected {name} as a number from 0 in auto_cleanup_options, found {value!r}")
    seconds = options.get("older_than_seconds")
    return {
        INTERVAL: str(options.get("interval", DEFAULT_INTERVAL)),
        OLDER_THAN: DEFAULT_OLDER_THAN if seconds is None else f"{seconds}s",
    }


@dataclass(frozen=True)
class AutomaticCleanup:
    """What the config of a table asks for.

    Args:
        interval: After how many versions it is cleaned up; 0 is after each.
        policy: Which versions go.
        with_branches: Whether branches that start from it are cleaned up too, each as its own config says.
    """

    interval: int
    policy: CleanupPolicy
    with_branches: bool

    @classmethod
    def of(cls, config: dict[str, str]) -> AutomaticCleanup | None:
        """What a config asks for, None if it asks for no clean-up.

        Raises:
            InvalidArgumentError: A value is not what its key needs.
        """
        if INTERVAL not in config:
            return None
        older_than = config.get(OLDER_THAN)
        return cls(
            interval=_number(config, "interval") or 0,
            policy=CleanupPolicy(
                older_than=None if older_than is None else duration(older_than),
                retain_versions=_number(config, "retain_versions") or None,
                rate_limit=_number(config, "delete_rate_limit"),
                concurrency=_number(config, "delete_concurrency"),
                error_if_tagged=False,
            ),
            with_branches=_switch(config, "referenced_branch"),
        )

    def is_due(self, version: int) -> bool:
        """Whether a clean-up follows this version."""
        return self.interval == 0 or version % self.interval == 0


def cleaned_up(table: TableVersion) -> TableVersion:
    """The version that was just committed, after the clean-up that its config asks for. A failure is a warning.

    The version before it stays too, as in pylance: readers may be about to open it. Tables in a repository are not
    cleaned up: it keeps their versions by its own rules.
    """
    if INTERVAL in table.manifest.config:
        follow(lambda: clean_up_if_due(table), f"version {table.number}")
    return table


def clean_up_if_due(table: TableVersion) -> None:
    """Cleans up what the config asks for at this version, which is a new one.

    Raises:
        InvalidArgumentError: A value of the config is not what its key needs.
        IOFailedError: The store failed.
    """
    in_repository = isinstance(table.log.store, StagingStore) or is_in_repository(table.log.uri)
    wanted = AutomaticCleanup.of(table.manifest.config)
    if wanted is None or in_repository or is_detached(table.number) or not wanted.is_due(table.number):
        return
    if wanted.with_branches:
        _clean_up_branches(table)
    _clean_up(table, wanted, keep_from=table.number - 1)


def _clean_up(table: TableVersion, wanted: AutomaticCleanup, *, keep_from: int) -> None:
    branch = table.manifest.branch
    log = log_of(table, branch, durable=False)
    main = log if branch is None else log_of(table, None, durable=False)
    cleanup(log, table.manifest, wanted.policy, main=main, keep_from=keep_from)


def _clean_up_branches(table: TableVersion) -> None:
    """Cleans up the branches that start from this one, or from one that does."""
    branches = read_branches(main_log(table))
    here = table.manifest.branch
    for name, branch in branches.items():
        if name != here and _starts_from(branch, here, branches):
            newest = table_at(table, Place(name, None))
            wanted = AutomaticCleanup.of(newest.manifest.config)
            if wanted is not None and wanted.is_due(newest.number):
                _clean_up(newest, replace(wanted, with_branches=False), keep_from=newest.number)


def _starts_from(branch: BranchContents, here: str | None, branches: dict[str, BranchContents]) -> bool:
    # All branches start from the main line, if through others.
    return here is None or branch.parent_branch == here or (here in branches and branch.descends_from(branches[here]))


def duration(text: str) -> timedelta:
    """A time as pylance writes it in a config.

    Raises:
        InvalidArgumentError: It is none.

    Example:
        >>> from esker.lance.cleanup.automatic import duration
        >>> duration("2h 30m").total_seconds(), duration("14days").days
        (9000.0, 14)
    """
    seconds, at = 0.0, 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or part.group(2) not in _SECONDS:
            break
        seconds, at = seconds + int(part.group(1)) * _SECONDS[part.group(2)], part.end()
    if not text or at < len(text):
        raise InvalidArgumentError(f"expected {OLDER_THAN} as a time like 3600s or 14days, found {text!r}; correct it")
    # Longer ones are longer than any table is old.
    return timedelta(seconds=min(seconds, 1e12))


def _number(config: dict[str, str], name: str) -> int | None:
    text = config.get(PREFIX + name)
    if text is not None and not (text.isascii() and text.isdigit()):
        raise InvalidArgumentError(f"expected {PREFIX}{name} as a number from 0, found {text!r}; correct it")
    return None if text is None else int(text)


def _switch(config: dict[str, str], name: str) -> bool:
    text = config.get(PREFIX + name, "false")
    if text not in ("true", "false"):
        raise InvalidArgumentError(f"expected {PREFIX}{name} as true or false, found {text!r}; correct it")
    return text == "true"
