"""Entries of a branch's log that lead to a commit."""

from __future__ import annotations

from .commits import Commit
from .numbered_log import LogEntry, NumberedLog
from .ref_commit import append

HIDDEN = "hidden"
"""In an entry's body: the branch is left out of listings."""


def is_hidden(entry: LogEntry) -> bool:
    """Whether a branch is left out of listings."""
    return entry.body.get(HIDDEN) is True


class Taken(Exception):
    """A log has an entry already."""


def begin_branch(log: NumberedLog, first: Commit, branch: str) -> LogEntry | None:
    """Puts the first entry of a branch of a repository that is being created; None if there is one."""

    def build(head: LogEntry | None) -> LogEntry:
        if head is not None:
            raise Taken
        return commit_entry("create", first)

    try:
        return append(log, build, f"create branch {branch}")
    except Taken:
        return None


def commit_entry(kind: str, commit: Commit) -> LogEntry:
    """An entry that leads to a commit, without those before it."""
    return LogEntry(0, kind, body={"commit_id": commit.id, "commit": commit.to_json()})
