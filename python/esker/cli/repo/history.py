"""`esker repo log|show|diff|merge-base`: what happened, and what differs."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ...exceptions import InvalidArgumentError
from ..amount import amount
from ..moment import moment_of
from ..output import Output
from .command import Commands, open_repository, tell
from .graph import Graph

if TYPE_CHECKING:
    from ...repo import Change, Commit


def add_commands(commands: Commands) -> None:
    """Adds the commands."""
    log = commands.add("log", "The commits that led to a ref.", log_of, "URI", "[REF]")
    log.add_argument("-n", "--max-amount", type=amount, help="at most so many")
    log.add_argument("--object", action="append", metavar="PATH", help="only those that changed this path")
    log.add_argument("--prefix", action="append", help="only those that changed paths that start so")
    log.add_argument("--first-parent", action="store_true", help="of merges, only the branch that was merged into")
    log.add_argument("--since", metavar="TIME", help="only commits made after it, as in 2026-07-01T12:00+02:00 (UTC)")
    log.add_argument("--after", metavar="REF", help="only those that come after its commit in this order")
    log.add_argument("--stop-at", metavar="REF", help="the last that is told")
    log.add_argument("--graph", action="store_true", help="draw who came from whom")
    commands.add("show", "What a commit says.", show, "URI", "[REF]")
    diff = commands.add("diff", "What one ref has that another has not.", diff_of, "URI", "LEFT", "RIGHT")
    diff.add_argument("--prefix", default="")
    diff.add_argument("--delimiter", default="", help="fold paths that go on after it")
    diff.add_argument("--two-dot", action="store_true", help="the plain difference, not what a merge would bring")
    commands.add("merge-base", "The commit that a merge would compare with.", merge_base, "URI", "LEFT", "RIGHT")


def log_of(options: argparse.Namespace, output: Output) -> None:
    """The commits that led to a ref."""
    repo = open_repository(options)
    commits = repo.ref(options.ref or repo.default_branch).log(
        max_amount=options.max_amount,
        after=options.after,
        objects=options.object,
        prefixes=options.prefix,
        first_parent=options.first_parent,
        since=_time(options.since),
        stop_at=options.stop_at,
    )
    if output.as_json:
        output.json([commit.to_json() for commit in commits])
        return
    graph = Graph()
    for commit in commits:
        above, own, below = graph.add(commit.id, commit.parents) if options.graph else ([], "*", [])
        for line in (*above, f"{own} {commit.id[:12]} {_when(commit)} {commit.committer}: {commit.message}", *below):
            output.line(line)


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidArgumentError(f"expected a time as in 2026-07-01T12:00+02:00, found {text!r}") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _when(commit: Commit) -> str:
    return moment_of(commit.creation_date, "%Y-%m-%d %H:%M")


def show(options: argparse.Namespace, output: Output) -> None:
    """What a commit says."""
    repo = open_repository(options)
    commit = repo.ref(options.ref or repo.default_branch).get_commit()
    if output.as_json:
        output.json(commit.to_json())
        return
    facts = {"commit": commit.id, "parents": " ".join(commit.parents), "committer": commit.committer}
    facts |= {"date": f"{_when(commit)} UTC", "message": commit.message, "metarange": commit.meta_range_id}
    output.facts("", facts | {f"metadata {key}": value for key, value in commit.metadata.items()})


def merge_base(options: argparse.Namespace, output: Output) -> None:
    """The commit that a merge of two refs would compare with."""
    repo = open_repository(options)
    base = repo.ref(options.left).merge_base(options.right)
    if base is None:
        raise InvalidArgumentError(f"{options.left!r} and {options.right!r} share no commit")
    tell(output, {"commit": base.id})


_SIGNS = {"added": "+", "removed": "-", "changed": "~", "conflict": "!", "prefix_changed": "~"}


def diff_of(options: argparse.Namespace, output: Output) -> None:
    """What one ref has that another has not."""
    kind = "two_dot" if options.two_dot else "three_dot"
    changes = (
        open_repository(options)
        .ref(options.left)
        .diff(options.right, prefix=options.prefix, delimiter=options.delimiter, type=kind)
    )
    if output.as_json:
        output.json([_change(change) for change in changes])
        return
    for change in changes:
        output.line(f"{_SIGNS[change.type]} {change.path}")


def _change(change: Change) -> dict[str, Any]:
    return {"type": change.type, "path": change.path, "size_bytes": change.size_bytes}
