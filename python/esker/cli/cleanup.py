"""`esker cleanup`: removes old versions and orphans of failed commits; `--dry-run` lists what it would remove."""

from __future__ import annotations

import dataclasses
import re
from argparse import ArgumentParser, Namespace
from datetime import timedelta

from ..exceptions import InvalidArgumentError
from .amount import amount
from .output import Output, size_text
from .tables import open_table

_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_AGE = re.compile(r"^(\d+(?:\.\d+)?)([dhms])$")


def add_arguments(parser: ArgumentParser) -> None:
    """Adds the options of the command."""
    parser.add_argument("--dry-run", action="store_true", help="list the files that would be removed, and remove none")
    parser.add_argument("--older-than", metavar="AGE", help="versions older than 14d, 12h, 30m or 0s (14d)")
    parser.add_argument("--retain", type=amount, metavar="N", help="keep the newest N versions")
    parser.add_argument(
        "--delete-unverified", action="store_true", help="also remove files that active writers may have staged"
    )
    parser.add_argument(
        "--keep-tagged", action="store_true", help="keep tagged versions silently, which is an error otherwise"
    )


def cleanup(options: Namespace, output: Output) -> None:
    """Cleans a table up, or lists the files that it would remove.

    Raises:
        InvalidArgumentError: The age does not parse.
        TaggedVersionsError: A tag keeps a version that would be removed otherwise.
    """
    dataset = open_table(options)
    older_than = _age(options.older_than)
    if options.dry_run:
        found = dataset.explain_cleanup_old_versions(
            older_than,
            options.retain,
            delete_unverified=options.delete_unverified,
            error_if_tagged_old_versions=not options.keep_tagged,
            include_files=True,
            max_files=None,
        )
        if output.as_json:
            output.json(dataclasses.asdict(found))
            return
        rows = [(file.kind, file.path, size_text(file.size_bytes), file.reason) for file in found.candidate_files]
        output.table(None, [("kind", False), ("file", False), ("size", True), ("why", False)], rows)
        stats = found.stats
    else:
        with output.progress("looking for files") as tally:
            stats = dataset.cleanup_old_versions(
                older_than,
                options.retain,
                delete_unverified=options.delete_unverified,
                error_if_tagged_old_versions=not options.keep_tagged,
                progress=tally.progress,
            )
        if output.as_json:
            output.json(dataclasses.asdict(stats))
            return
    facts = {name.replace("_", " "): f"{count:,}" for name, count in dataclasses.asdict(stats).items()}
    facts["bytes removed"] = size_text(stats.bytes_removed)
    output.facts("would go" if options.dry_run else "gone", facts)


def _age(text: str | None) -> timedelta | None:
    if text is None:
        return None
    match = _AGE.match(text)
    if match is None:
        raise InvalidArgumentError(f"expected an age such as 14d, 12h, 30m or 0s, found {text!r}")
    return timedelta(**{_UNITS[match.group(2)]: float(match.group(1))})
