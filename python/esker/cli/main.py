"""The commands, their arguments and their exit codes: 0 done, 1 an error of esker, 2 a wrong call."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import get_args

from .. import __version__
from ..exceptions import EskerError
from ..lance.write.compression import DEFAULT_COMPRESSION, Compression
from . import cleanup, compact, info, inspect, repo, rows, tables
from .amount import amount, number_or_name
from .output import Output
from .terminal_text import printable

_INTERRUPTED = 130
"""The exit code of what Ctrl-C ended, as shells have it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        arguments: The command line without the program's name; `sys.argv` by default.

    Returns:
        The exit code.

    Example:
        `main(["count", "flights.lance", "--filter", "delay > 60"])`
    """
    if isinstance(sys.stdout, TextIOWrapper):
        # A terminal or a log in another encoding than UTF-8 may lack characters of a table.
        sys.stdout.reconfigure(errors="backslashreplace")
    options = _parser().parse_args(arguments)
    output = Output(as_json=options.json)
    try:
        options.run(options, output)
    except EskerError as error:
        # A message may hold stored text: escape what controls a terminal, but keep the lines of the message.
        print("error: " + "\n".join(printable(line) for line in str(error).split("\n")), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader of our output, such as `head`, has closed the pipe.
        sys.stderr.close()
        return 0
    except OSError as error:
        # The disk that our output goes to is full, or a file of the user's own cannot be read.
        print(f"error: {printable(str(error))}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="esker", description="Look at versioned tables and their files, and look after them."
    )
    parser.add_argument("--version", action="version", version=f"esker {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, help: str, run: object, subject: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=help, description=help)
        made.add_argument(subject.lower(), metavar=subject, help="a path or a URI")
        made.add_argument("--json", action="store_true", help="print JSON for scripts")
        made.add_argument(
            "--storage-option", action="append", default=[], metavar="KEY=VALUE", help="an option of the store"
        )
        made.set_defaults(run=run)
        return made

    def version(made: argparse.ArgumentParser) -> argparse.ArgumentParser:
        told = "a version, the latest by default: a number, a tag of a Lance table, a time of a Delta table"
        made.add_argument("--at", type=number_or_name, metavar="VERSION", help=told)
        return made

    version(command("info", "What lies there: a Lance table, a Delta table or a repository.", info.info, "URI"))
    version(command("schema", "The columns of a table with their field ids.", tables.schema, "URI"))
    command("versions", "The versions of a table, and what made each.", tables.versions, "URI")
    head = version(command("head", "The first rows of a table.", rows.head, "URI"))
    head.add_argument("-n", "--rows", type=amount, default=10, help="how many rows (10)")
    head.add_argument("--columns", metavar="A,B,...", help="these columns only")
    head.add_argument("--filter", metavar="SQL", help="rows for which this is true")
    count = version(command("count", "How many rows a table has.", rows.count, "URI"))
    count.add_argument("--filter", metavar="SQL", help="rows for which this is true")
    sql = version(command("sql", "The rows of a SQL query; the table is called dataset.", rows.sql, "URI"))
    sql.add_argument("query", metavar="QUERY", help='such as "SELECT count(*) FROM dataset"')
    cleanup.add_arguments(
        command("cleanup", "Remove old versions and orphans of failed commits.", cleanup.cleanup, "URI")
    )
    compact.add_arguments(
        command("compact", "Join small fragments, and remove deleted rows from files.", compact.compact, "URI")
    )
    layout = command("inspect", "What one data file holds: columns, pages, encodings, bytes.", inspect.inspect, "FILE")
    layout.add_argument(
        "--why", action="store_true", help="for each page, its other possible encodings and their sizes"
    )
    layout.add_argument(
        "--compression",
        choices=get_args(Compression),
        default=DEFAULT_COMPRESSION,
        help="how small files are to be, as --why weighs their encodings (default: %(default)s)",
    )
    repo.add_commands(commands)
    return parser
