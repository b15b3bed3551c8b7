"""`esker repo ...`: looks at repositories, and changes them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO

from ..exceptions import InvalidArgumentError
from .output import Output, size_text

if TYPE_CHECKING:
    from rich.progress import Progress

    from ..repo import Change, Conflict, Repository

Run = Callable[[argparse.Namespace, Output], None]


def add_commands(commands: Any) -> None:
    """Adds the command `repo` and those below it."""
    repo = commands.add_parser("repo", help="Repositories: branches, commits and merges over a lake.")
    below = repo.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, help: str, run: Run, *subjects: str) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = below.add_parser(name, help=help, description=help)
        for subject in subjects:
            optional = subject.startswith("[")
            made.add_argument(subject.strip("[]").lower(), metavar=subject, nargs="?" if optional else None)
        made.add_argument("--json", action="store_true", help="print JSON for scripts")
        made.add_argument("--storage-option", action="append", default=[], metavar="KEY=VALUE", help="of the store")
        made.set_defaults(run=run)
        return made

    command("create", "Creates a repository.", create, "URI").add_argument("--branch", default="main")
    log = command("log", "The commits that led to a ref.", log_of, "URI", "[REF]")
    log.add_argument("-n", "--max-amount", type=int, help="at most so many")
    log.add_argument("--prefix", help="only those that changed paths that start so")
    log.add_argument("--graph", action="store_true", help="draw who came from whom")
    branch = command("branch", "Lists branches, or creates one, or deletes one.", branches, "URI", "[NAME]")
    branch.add_argument("--source", help="the ref to create it at")
    branch.add_argument("--delete", action="store_true")
    tag = command("tag", "Lists tags, or creates one, or deletes one.", tags, "URI", "[NAME]")
    tag.add_argument("--source", help="the ref to create it at")
    tag.add_argument("--delete", action="store_true")
    diff = command("diff", "What one ref has that another has not.", diff_of, "URI", "LEFT", "RIGHT")
    diff.add_argument("--prefix", default="")
    diff.add_argument("--delimiter", default="", help="fold paths that go on after it")
    diff.add_argument("--two-dot", action="store_true", help="the plain difference, not what a merge would bring")
    merge = command("merge", "Merges a ref into a branch.", merge_of, "URI", "SOURCE", "DESTINATION")
    merge.add_argument("-m", "--message")
    merge.add_argument("--strategy", choices=["source-wins", "dest-wins"])
    merge.add_argument("--squash", action="store_true")
    merge.add_argument("--dry-run", action="store_true")
    ls = command("ls", "The objects of a ref.", ls_of, "URI", "REF", "[PREFIX]")
    ls.add_argument("-r", "--recursive", action="store_true", help="not folded at /")
    command("cat", "Writes an object's bytes to standard output.", cat, "URI", "REF", "PATH")
    put = command("put", "Commits a file, or standard input, as an object.", put_of, "URI", "BRANCH", "PATH", "[FILE]")
    put.add_argument("-m", "--message", default="")
    gc = command("gc", "Deletes what no commit within the retention leads to.", gc_of, "URI")
    gc.add_argument("--delete", action="store_true", help="without it, only counts")
    command("repack", "Joins the small ranges of a branch.", repack, "URI", "BRANCH")
    check = command("fsck", "Checks ids, ranges, references and objects.", fsck, "URI")
    check.add_argument("--imports", action="store_true", help="look for imported objects too")
    command("cat-sst", "The records of a range, a metarange or a dump.", cat_sst, "FILE")


def _open(options: argparse.Namespace) -> Repository:
    from ..repo import Repository

    pairs = dict(pair.split("=", 1) for pair in options.storage_option)
    return Repository(options.uri, storage_options=pairs or None)


def create(options: argparse.Namespace, output: Output) -> None:
    """Creates a repository."""
    from ..repo import Repository

    pairs = dict(pair.split("=", 1) for pair in options.storage_option)
    made = Repository.create(options.uri, default_branch=options.branch, storage_options=pairs or None)
    _said(output, {"uri": made.uri, "id": made.id, "default_branch": made.default_branch})


def _said(output: Output, facts: dict[str, str]) -> None:
    if output.as_json:
        output.json(facts)
    else:
        output.facts("", facts)


def log_of(options: argparse.Namespace, output: Output) -> None:
    """The commits that led to a ref."""
    repo = _open(options)
    ref = repo.ref(options.ref or repo.default_branch)
    prefixes = [options.prefix] if options.prefix else None
    commits = ref.log(max_amount=options.max_amount, prefixes=prefixes)
    if output.as_json:
        output.json([commit.to_json() for commit in commits])
        return
    lanes: list[str] = []
    for commit in commits:
        drawn = _drawn(lanes, commit.id, commit.parents) if options.graph else ["*"]
        when = datetime.fromtimestamp(commit.creation_date, UTC).strftime("%Y-%m-%d %H:%M")
        print(f"{drawn[0]} {commit.id[:12]} {when} {commit.committer}: {commit.message}")
        for line in drawn[1:]:
            print(line)


def _drawn(lanes: list[str], id: str, parents: tuple[str, ...]) -> list[str]:
    """A commit's line of the graph, and those below it; `lanes` are the commits that each column waits for."""
    if id not in lanes:
        lanes.append(id)
    at = lanes.index(id)
    lines = [" ".join("*" if n == at else "|" for n in range(len(lanes)))]
    joined = [n for n, lane in enumerate(lanes) if lane == id and n != at]
    for n in reversed(joined):
        lines.append(" ".join("|" if m != n else "/" for m in range(len(lanes))))
        del lanes[n]
    if not parents:
        del lanes[at]
        return lines
    lanes[at] = parents[0]
    for parent in parents[1:]:
        lanes.append(parent)
        lines.append(" ".join("|" for _ in lanes[:-1]) + " \\")
    return lines


def branches(options: argparse.Namespace, output: Output) -> None:
    """Lists branches, creates one, or deletes one."""
    repo = _open(options)
    if options.name is None:
        _names(output, {branch.id: branch.get_commit().id for branch in repo.branches()})
    elif options.delete:
        repo.branch(options.name).delete()
    else:
        repo.branch(options.name).create(options.source or repo.default_branch)


def tags(options: argparse.Namespace, output: Output) -> None:
    """Lists tags, creates one, or deletes one."""
    repo = _open(options)
    if options.name is None:
        _names(output, {tag.id: repo.tag(tag.id).get_commit().id for tag in repo.tags()})
    elif options.delete:
        repo.tag(options.name).delete()
    else:
        repo.tag(options.name).create(options.source or repo.default_branch)


def _names(output: Output, names: dict[str, str]) -> None:
    if output.as_json:
        output.json(names)
    else:
        output.table(None, [("name", False), ("commit", False)], ([name, id[:12]] for name, id in names.items()))


_SIGNS = {"added": "+", "removed": "-", "changed": "~", "conflict": "!", "prefix_changed": "~"}


def diff_of(options: argparse.Namespace, output: Output) -> None:
    """What one ref has that another has not."""
    kind = "two_dot" if options.two_dot else "three_dot"
    changes = (
        _open(options)
        .ref(options.left)
        .diff(options.right, prefix=options.prefix, delimiter=options.delimiter, type=kind)
    )
    if output.as_json:
        output.json([_change(change) for change in changes])
        return
    for change in changes:
        print(f"{_SIGNS[change.type]} {change.path}")


def _change(change: Change) -> dict[str, Any]:
    return {"type": change.type, "path": change.path, "size_bytes": change.size_bytes}


def merge_of(options: argparse.Namespace, output: Output) -> None:
    """Merges a ref into a branch; conflicts are listed with what all three sides have."""
    from ..repo import MergeConflictError

    source = _open(options).ref(options.source)
    try:
        id = source.merge_into(
            options.destination,
            message=options.message,
            strategy=options.strategy,
            squash_merge=options.squash,
            dry_run=options.dry_run,
        )
    except MergeConflictError as error:
        listed = [_conflict(conflict) for conflict in error.conflicts]
        if output.as_json:
            output.json({"conflicts": listed})
        else:
            columns = [("conflict", False), ("base", False), ("source", False), ("destination", False)]
            output.table(None, columns, ([one[name] or "-" for name in ("path", *_SIDES)] for one in listed))
        raise
    _said(output, {"commit": id})


_SIDES = ("base", "source", "dest")


def _conflict(conflict: Conflict) -> dict[str, str | None]:
    told: dict[str, str | None] = {"path": conflict.path}
    for side in _SIDES:
        there = getattr(conflict, side)
        told[side] = f"{size_text(there.size_bytes)} {there.checksum[:12]}" if there else None
    return told


def ls_of(options: argparse.Namespace, output: Output) -> None:
    """The objects of a ref."""
    from ..repo import ObjectInfo

    found = (
        _open(options).ref(options.ref).objects(prefix=options.prefix or "", delimiter="" if options.recursive else "/")
    )
    if output.as_json:
        output.json([vars(entry) for entry in found])
        return
    for entry in found:
        size = size_text(entry.size_bytes) if isinstance(entry, ObjectInfo) else ""
        print(f"{size:>10}  {entry.path}")


def cat(options: argparse.Namespace, output: Output) -> None:
    """Writes an object's bytes to standard output."""
    import shutil

    with _open(options).ref(options.ref).object(options.path).reader() as reader:
        shutil.copyfileobj(reader, sys.stdout.buffer)
    sys.stdout.flush()


def put_of(options: argparse.Namespace, output: Output) -> None:
    """Commits a file, or standard input, as an object."""
    branch = _open(options).branch(options.branch)
    if options.file in (None, "-"):
        branch.object(options.path).upload(sys.stdin.buffer)
    else:
        with open(options.file, "rb") as file, output.progress("writing", os.path.getsize(options.file)) as bar:
            branch.object(options.path).upload(_told(file, bar))
    _said(output, {"commit": branch.commit(options.message or f"Put {options.path}").id})


def _told(file: BinaryIO, bar: Progress | None) -> Iterator[bytes]:
    """A file's pieces, and a bar that moves with them."""
    while piece := file.read(8 << 20):
        yield piece
        if bar is not None:
            bar.advance(bar.task_ids[0], len(piece))


def _shown(bar: Progress | None) -> Callable[[str, int, int | None], None] | None:
    """What a bar is told while something goes on; None where nobody watches."""
    if bar is None:
        return None
    task = bar.task_ids[0]

    def show(what: str, done: int, total: int | None) -> None:
        bar.update(task, description=what, completed=done, total=total)

    return show


def gc_of(options: argparse.Namespace, output: Output) -> None:
    """Deletes what no commit within the retention leads to, or counts it."""
    repo = _open(options)
    with output.progress("listing", None) as bar:
        found = repo.gc(dry_run=not options.delete, progress=_shown(bar))
    said = {name: str(value) for name, value in vars(found).items()}
    if not output.as_json and not options.delete:
        said["deleted"] = "nothing: --delete does it"
    _said(output, {**said, "bytes": size_text(found.bytes)} if not output.as_json else said)


def repack(options: argparse.Namespace, output: Output) -> None:
    """Joins the small ranges of a branch."""
    with output.progress("packing ranges", None):
        id = _open(options).branch(options.branch).repack().id
    _said(output, {"commit": id})


def fsck(options: argparse.Namespace, output: Output) -> None:
    """Checks a repository; what it finds makes it fail."""
    findings = []
    with output.progress("checking refs", None) as bar:
        for finding in _open(options).fsck(imports=options.imports, progress=_shown(bar)):
            findings.append(finding)
            if not output.as_json:
                print(finding, flush=True)
    if output.as_json:
        output.json(findings)
    if findings:
        raise InvalidArgumentError(f"{len(findings)} findings; restore what is missing")


def cat_sst(options: argparse.Namespace, output: Output) -> None:
    """The records of a table, decoded, and its properties."""
    from .tables_of_repository import described

    properties, records = described(options.file, options.storage_option)
    if output.as_json:
        output.json({"properties": properties, "records": list(records)})
        return
    output.facts(options.file, properties)
    for record in records:
        print(_line(record))


def _line(record: dict[str, Any]) -> str:
    said = {name: value for name, value in record.items() if name != "key" and value not in ("", {}, None)}
    rest = ", ".join(f"{name}={value}" for name, value in said.items())
    return f"{record['key']}  {rest}"
