"""What the commands of `esker repo` have in common: how they are declared, open a repository, tell what they did."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ...exceptions import InvalidArgumentError
from ..output import Output

if TYPE_CHECKING:
    from ...repo import Repository

Run = Callable[[argparse.Namespace, Output], None]


class Commands:
    """The commands below `esker repo`.

    Args:
        below: What argparse adds them to.

    Example:
        `commands.add("show", "One commit.", show, "URI", "[REF]")`
    """

    def __init__(self, below: Any) -> None:
        self._below = below

    def add(self, name: str, help: str, run: Run, *subjects: str) -> argparse.ArgumentParser:
        """Adds a command. A subject in brackets may be left out, one with dots behind it may come several times."""
        made: argparse.ArgumentParser = self._below.add_parser(name, help=help, description=help)
        for subject in subjects:
            bare = subject.strip("[].")
            several = "*" if subject.startswith("[") else "+"
            count = several if "..." in subject else "?" if subject.startswith("[") else None
            made.add_argument(bare.lower(), metavar=bare, nargs=count)
        made.add_argument("--json", action="store_true", help="print JSON for scripts")
        made.add_argument("--storage-option", action="append", default=[], metavar="KEY=VALUE", help="of the store")
        made.set_defaults(run=run)
        return made


def add_commit_options(command: argparse.ArgumentParser) -> None:
    """Adds what a commit is told."""
    command.add_argument("-m", "--message", default="", help="why")
    command.add_argument("--meta", action="append", default=[], metavar="KEY=VALUE", help="of the commit")


def pairs(given: Iterable[str], option: str) -> dict[str, str]:
    """Keys and values of an option that may come several times.

    Raises:
        InvalidArgumentError: One has no `=`.

    Example:
        >>> from esker.cli.repo.command import pairs
        >>> pairs(["job=17"], "--meta")
        {'job': '17'}
    """
    found = {}
    for pair in given:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise InvalidArgumentError(f"expected {option} KEY=VALUE, found {pair!r}")
        found[key] = value
    return found


def open_repository(options: argparse.Namespace) -> Repository:
    """The repository that a command is about."""
    from ...repo import Repository

    return Repository(options.uri, storage_options=pairs(options.storage_option, "--storage-option") or None)


def tell(output: Output, facts: Mapping[str, object]) -> None:
    """Prints names and values; numbers are numbers in JSON."""
    if output.as_json:
        output.json(dict(facts))
    else:
        output.facts("", {name: str(value) for name, value in facts.items()})
