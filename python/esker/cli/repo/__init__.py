"""`esker repo ...`: looks at repositories, and changes them."""

from __future__ import annotations

from typing import Any

from . import history, objects, refs, upkeep
from .command import Commands


def add_commands(commands: Any) -> None:
    """Adds the command `repo` and those below it."""
    repo = commands.add_parser("repo", help="Repositories: branches, commits and merges over a lake.")
    below = Commands(repo.add_subparsers(metavar="COMMAND", required=True))
    for concept in (refs, history, objects, upkeep):
        concept.add_commands(below)
