"""Run the demo: ``python -m esker.demo --output DIR``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m esker.demo",
        description="A PySpark pipeline that writes a year of flights to a versioned esker table, and reads it back.",
    )
    parser.add_argument(
        "--output",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder for the table, the chart and the source; those of an earlier run are replaced",
    )
    parser.add_argument(
        "--months", type=int, default=12, choices=range(1, 13), metavar="N", help="months to load, 1-12"
    )
    parser.add_argument("--rows", type=int, default=1000, metavar="N", help="random rows to take and compare")
    parser.add_argument("--seed", type=int, default=2013, metavar="N", help="seed of the random rows")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the demo and return the exit code: 0 if every check passed, 1 if one failed, 2 if something is missing."""
    options = parse_arguments(arguments)
    try:
        from esker.demo.source import MissingPart
        from esker.demo.story import run
    except ModuleNotFoundError as error:
        print(f"the demo needs the module {error.name}: pip install 'esker[demo]'", file=sys.stderr)
        return 2
    try:
        return run(output=options.output, months=options.months, rows=options.rows, seed=options.seed)
    except MissingPart as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
