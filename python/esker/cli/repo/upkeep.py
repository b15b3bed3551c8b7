"""`esker repo settings|gc|repack|pack-refs|refs-dump|refs-restore|fsck|cat-sst`: what keeps a repository well."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, fields
from typing import Any

from ...exceptions import InvalidArgumentError, NotFoundError
from ..output import Output, size_text
from .command import Commands, open_repository, pairs, tell


def add_commands(commands: Commands) -> None:
    """Adds the commands."""
    commands.add("settings", "What the users have agreed on, or a change of it.", settings, "URI", "[SETTING...]")
    gc = commands.add("gc", "Deletes what no commit within the retention leads to.", gc_of, "URI")
    gc.add_argument("--delete", action="store_true", help="without it, only counts")
    commands.add("repack", "Joins the small ranges of a branch.", repack, "URI", "BRANCH")
    commands.add("pack-refs", "Copies all commits into one object, for fast histories.", pack_refs, "URI")
    commands.add("refs-dump", "Writes refs and commits as lakeFS's refs-restore takes them.", refs_dump, "URI")
    restore = "Takes over the refs of a lakeFS server's dump in a repository that was just created."
    commands.add("refs-restore", restore, refs_restore, "URI", "[MANIFEST]")
    check = commands.add("fsck", "Checks ids, ranges, references and objects.", fsck, "URI")
    check.add_argument("--imports", action="store_true", help="look for imported objects too")
    check.add_argument("--tables", action="store_true", help="look whether the tables of all refs are whole")
    commands.add("cat-sst", "The records of a range, a metarange or a dump.", cat_sst, "FILE")


def settings(options: argparse.Namespace, output: Output) -> None:
    """Shows the settings, or changes some."""
    repo = open_repository(options)
    changes = {name: _value(name, text) for name, text in pairs(options.setting, "a setting").items()}
    found = asdict(repo.change_settings(**changes) if changes else repo.settings)
    if output.as_json:
        output.json(found)
    else:
        output.facts("", {name: ", ".join(v) if isinstance(v, tuple) else str(v) for name, v in found.items()})


def _value(name: str, text: str) -> Any:
    """A setting's value: JSON, or for patterns of branches names with commas between them."""
    from ...repo import Settings

    default = next((setting for setting in fields(Settings) if setting.name == name), None)
    if default is None:
        raise InvalidArgumentError(f"expected a setting among {[s.name for s in fields(Settings)]}, found {name!r}")
    if name == "protected_branches" and not text.startswith("["):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InvalidArgumentError(f"expected a value for {name} in JSON, found {text!r}") from error
    now = getattr(Settings(), name)
    wanted = (list,) if isinstance(now, tuple) else (int, float) if isinstance(now, float) else (type(now),)
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise InvalidArgumentError(f"expected a value for {name} like {now!r}, found {text!r}")
    return tuple(value) if isinstance(value, list) else value


def gc_of(options: argparse.Namespace, output: Output) -> None:
    """Deletes what no commit within the retention leads to, or counts it."""
    repo = open_repository(options)
    with output.progress("listing") as tally:
        found = repo.gc(dry_run=not options.delete, progress=tally.progress)
    if output.as_json:
        output.json(vars(found))
        return
    said = {name: str(value) for name, value in vars(found).items()} | {"bytes": size_text(found.bytes)}
    tell(output, said if options.delete else {**said, "deleted": "nothing: --delete does it"})


def repack(options: argparse.Namespace, output: Output) -> None:
    """Joins the small ranges of a branch."""
    with output.progress("packing ranges"):
        id = open_repository(options).branch(options.branch).repack().id
    tell(output, {"commit": id})


def pack_refs(options: argparse.Namespace, output: Output) -> None:
    """Copies all commits into one object."""
    with output.progress("packing commits"):
        count = open_repository(options).pack_refs()
    tell(output, {"commits": count})


def refs_dump(options: argparse.Namespace, output: Output) -> None:
    """Writes refs and commits in lakeFS's form."""
    with output.progress("writing refs"):
        dump = open_repository(options).dump_refs()
    tell(output, asdict(dump))


def refs_restore(options: argparse.Namespace, output: Output) -> None:
    """Takes over the refs of a dump: of the one that a manifest names, by default the repository's own newest."""
    from ...repo.refs.refs_dump import RefsDump

    dump = None
    if options.manifest is not None:
        try:
            with open(options.manifest, "rb") as file:
                dump = RefsDump(**json.load(file))
        except FileNotFoundError as error:
            raise NotFoundError(f"expected a manifest, found nothing at {options.manifest!r}") from error
        except (ValueError, TypeError) as error:
            wanted = ", ".join(field.name for field in fields(RefsDump))
            raise InvalidArgumentError(f"{options.manifest}: expected JSON with {wanted}, found {error}") from error
    repo = open_repository(options)
    with output.progress("reading refs"):
        repo.restore_refs(dump)
    tell(output, {"branches": len(list(repo.branches())), "tags": len(list(repo.tags()))})


def fsck(options: argparse.Namespace, output: Output) -> None:
    """Checks a repository; what it finds makes it fail."""
    findings = []
    with output.progress("checking refs") as tally:
        repo = open_repository(options)
        for finding in repo.fsck(imports=options.imports, tables=options.tables, progress=tally.progress):
            findings.append(finding)
            if not output.as_json:
                output.line(str(finding))
    if output.as_json:
        output.json(findings)
    elif not findings:
        output.line("nothing is missing or damaged")
    if findings:
        raise InvalidArgumentError(f"{len(findings)} findings; restore what is missing")


def cat_sst(options: argparse.Namespace, output: Output) -> None:
    """The records of a table, decoded, and its properties."""
    from .tables import described

    properties, records = described(options.file, options.storage_option)
    if output.as_json:
        output.json({"properties": properties, "records": list(records)})
        return
    output.facts(options.file, properties)
    for record in records:
        output.line(_line(record))


def _line(record: dict[str, Any]) -> str:
    said = {name: value for name, value in record.items() if name != "key" and value not in ("", {}, None)}
    rest = ", ".join(f"{name}={value}" for name, value in said.items())
    return f"{record['key']}  {rest}"
