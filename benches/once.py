"""Repeat one case of one engine for some seconds, for a profiler to look at.

``perf record -g .venv/bin/python -m benches.once --engine esker --input numbers --case scan``
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from benches.cases import CASES, Subject
from benches.data import SIZES, TABLES, make_input
from benches.measure import Samples, once
from benches.peers.lance_tables import DEFAULT_FILE_VERSION, FILE_VERSIONS
from benches.run import MAKERS


def main(arguments: list[str] | None = None) -> int:
    """Write the input, then repeat the case."""
    parser = argparse.ArgumentParser(prog="python -m benches.once", description="repeat one case for a profiler")
    parser.add_argument("--engine", choices=list(MAKERS), default="esker")
    parser.add_argument("--input", choices=list(TABLES), default="numbers")
    parser.add_argument("--case", choices=[case.name for case in CASES], default="scan")
    parser.add_argument("--version", choices=FILE_VERSIONS, default=DEFAULT_FILE_VERSION, help="of Lance files")
    parser.add_argument("--rows", type=int, default=SIZES["small"])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scratch", type=Path, help="where the table is written; default: the system's folder")
    options = parser.parse_args(arguments)
    data = make_input(options.input, options.rows, options.seed)
    peer = MAKERS[options.engine](options.version)
    case = next(case for case in CASES if case.name == options.case)
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        subject = Subject(peer, data, Path(folder) / "table", Path(folder), options.seed)
        peer.write(data.table, subject.path)
        operation = case.prepare(subject)
        samples = Samples()
        end = time.perf_counter() + options.seconds
        while time.perf_counter() < end:
            wall, processor = once(operation)
            samples.wall.append(wall)
            samples.processor.append(processor)
    summary = samples.summary()
    summary.pop("seconds")
    print(options.engine, options.input, options.case, len(samples.wall), "runs", summary)
    return 0


if __name__ == "__main__":
    sys.exit(main())
