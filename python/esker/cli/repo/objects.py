"""`esker repo ls|stat|cat|put|rm|import|export`: the objects of a ref."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ...exceptions import InvalidArgumentError, NotFoundError
from ...progress import Tally
from ..output import Output, size_text
from .command import Commands, add_commit_options, open_repository, pairs, tell

if TYPE_CHECKING:
    from ...repo import Branch, ImportManager, ImportStatus

_UPLOADS = 8
"""Files that are put side by side."""
_PIECE_BYTES = 8 << 20
_LOOK_S = 0.1
"""Seconds between two looks at how far an import is."""


def add_commands(commands: Commands) -> None:
    """Adds the commands."""
    ls = commands.add("ls", "The objects of a ref.", ls_of, "URI", "REF", "[PREFIX]")
    ls.add_argument("-r", "--recursive", action="store_true", help="not folded at /")
    commands.add("stat", "What is known of an object.", stat, "URI", "REF", "PATH")
    commands.add("cat", "Writes an object's bytes to standard output.", cat, "URI", "REF", "PATH")
    put = commands.add(
        "put",
        "Commits a file, or standard input, as an object; several files or a folder below a path, in one commit.",
        put_of,
        "URI",
        "BRANCH",
        "PATH",
        "[FILE...]",
    )
    add_commit_options(put)
    put.add_argument("--content-type", metavar="TYPE", help="the objects' media type")
    put.add_argument("--object-meta", action="append", default=[], metavar="KEY=VALUE", help="of the objects")
    rm = commands.add("rm", "Removes objects, in one commit.", rm_of, "URI", "BRANCH", "PATH...")
    add_commit_options(rm)
    rm.add_argument("-r", "--recursive", action="store_true", help="all objects whose paths start with PATH")
    bring = commands.add(
        "import",
        "Commits references to objects below a URI, without copying.",
        import_of,
        "URI",
        "BRANCH",
        "SOURCE",
        "PATH",
    )
    add_commit_options(bring)
    bring.add_argument("--object", action="store_true", help="SOURCE is one object, PATH where it goes")
    out = commands.add("export", "Copies the objects of a ref below a URI.", export, "URI", "REF", "DESTINATION")
    out.add_argument("--prefix", default="", help="those whose paths start so")


def ls_of(options: argparse.Namespace, output: Output) -> None:
    """The objects of a ref."""
    from ...repo import ObjectInfo

    ref = open_repository(options).ref(options.ref)
    found = ref.objects(prefix=options.prefix or "", delimiter="" if options.recursive else "/")
    if output.as_json:
        output.json([vars(entry) for entry in found])
        return
    for entry in found:
        size = size_text(entry.size_bytes) if isinstance(entry, ObjectInfo) else ""
        output.line(f"{size:>10}  {entry.path}")


def stat(options: argparse.Namespace, output: Output) -> None:
    """What is known of an object."""
    found = open_repository(options).ref(options.ref).object(options.path).stat()
    if output.as_json:
        output.json(vars(found))
        return
    facts = {name: str(value) for name, value in vars(found).items() if name != "metadata" and value not in ("", None)}
    facts |= {"size_bytes": f"{found.size_bytes} ({size_text(found.size_bytes)})"}
    facts |= {f"metadata {key}": value for key, value in found.metadata.items()}
    output.facts("", facts)


def cat(options: argparse.Namespace, output: Output) -> None:
    """Writes an object's bytes to standard output."""
    import shutil

    with open_repository(options).ref(options.ref).object(options.path).reader() as reader:
        shutil.copyfileobj(reader, sys.stdout.buffer)
    sys.stdout.flush()


def put_of(options: argparse.Namespace, output: Output) -> None:
    """Commits files, or standard input, as objects."""
    branch = open_repository(options).branch(options.branch)
    described: dict[str, Any] = {
        "content_type": options.content_type,
        "metadata": pairs(options.object_meta, "--object-meta"),
    }
    said = pairs(options.meta, "--meta")
    if options.file in ([], ["-"]):
        branch.object(options.path).upload(sys.stdin.buffer, **described)
        count = 1
    else:
        files = _files(options.file, options.path)
        size = sum(os.path.getsize(file) for _, file in files)
        with output.progress("writing", size, unit="bytes") as tally:
            _upload(branch, files, described, tally)
        count = len(files)
    message = options.message or f"Put {options.path or 'files'}"
    commit = branch.commit(message, said).id
    tell(output, {"commit": commit} if count == 1 else {"commit": commit, "objects": count})


def _files(given: list[str], path: str) -> list[tuple[str, str]]:
    """Paths of the repository, and the files that go there.

    One file is the object at the path, unless that ends in `/`; of several, and of folders, the path is the folder.
    """
    for name in given:
        if not os.path.exists(name):
            raise NotFoundError(f"expected a file or a folder, found nothing at {name!r}", path=name)
    if len(given) == 1 and os.path.isfile(given[0]) and not path.endswith("/"):
        return [(path, given[0])]
    below = path.strip("/") + "/" if path.strip("/") else ""
    found = []
    for name in given:
        inner = sorted(_inside(name)) if os.path.isdir(name) else [name]
        root = name if os.path.isdir(name) else os.path.dirname(name)
        found += [(below + Path(file).relative_to(root).as_posix(), file) for file in inner]
    twice = [path for path, count in Counter(path for path, _ in found).items() if count > 1]
    if twice:
        raise InvalidArgumentError(f"expected files of different names, found {len(twice)} twice: {twice[0]!r}")
    if not found:
        raise InvalidArgumentError(f"expected files to put, found none in {', '.join(given)}")
    return found


def _inside(folder: str) -> Iterator[str]:
    for root, _, names in os.walk(folder):
        yield from (os.path.join(root, name) for name in names)


def _upload(branch: Branch, files: list[tuple[str, str]], described: dict[str, Any], tally: Tally) -> None:
    def one(target: tuple[str, str]) -> None:
        with open(target[1], "rb") as file:
            branch.object(target[0]).upload(_pieces(file, tally), **described)

    # The first alone: it finds out what the others go over.
    one(files[0])
    with ThreadPoolExecutor(_UPLOADS) as threads:
        for _ in threads.map(one, files[1:]):
            pass


def _pieces(file: BinaryIO, tally: Tally) -> Iterator[bytes]:
    """A file's pieces, and a bar that moves with them."""
    while piece := file.read(_PIECE_BYTES):
        yield piece
        tally.add(bytes=len(piece))


def rm_of(options: argparse.Namespace, output: Output) -> None:
    """Removes objects, in one commit."""
    branch = open_repository(options).branch(options.branch)
    wanted = []
    for path in options.path:
        found = [entry.path for entry in branch.objects(prefix=path)] if options.recursive else [path]
        if not found or (not options.recursive and not branch.object(path).exists()):
            raise NotFoundError(f"no object {path!r} in {options.branch!r}; nothing was removed", path=path)
        wanted += found
    branch.delete_objects(wanted)
    message = options.message or f"Remove {', '.join(options.path)}"
    commit = branch.commit(message, pairs(options.meta, "--meta")).id
    tell(output, {"commit": commit, "objects": len(set(wanted))})


def import_of(options: argparse.Namespace, output: Output) -> None:
    """Commits references to objects that are elsewhere."""
    branch = open_repository(options).branch(options.branch)
    manager = branch.import_data(options.message, pairs(options.meta, "--meta"))
    add = manager.object if options.object else manager.prefix
    with output.progress("listing") as tally:
        done = _watched(add(options.source, options.path), tally)
    tell(output, {"commit": str(done.commit_id), "objects": done.ingested_objects})


def _watched(started: ImportManager, tally: Tally) -> ImportStatus:
    """Runs an import, and tells of the objects that it has listed so far."""
    if tally.progress is None:
        return started.run()
    started.start()
    told = 0
    while not (now := started.status()).completed and now.error is None:
        tally.add(parts=now.ingested_objects - told)
        told = now.ingested_objects
        time.sleep(_LOOK_S)
    return started.wait()


def export(options: argparse.Namespace, output: Output) -> None:
    """Copies the objects of a ref below a URI."""
    ref = open_repository(options).ref(options.ref)
    with output.progress("copying"):
        count = ref.export(options.destination, prefix=options.prefix)
    tell(output, {"objects": count})
