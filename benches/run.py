"""The run: make the inputs, write them with each engine, verify, measure in turns, report."""

from __future__ import annotations

import argparse
import datetime
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from benches import cases, chart, machine, page_cache, report
from benches.data import SIZES, TABLES, Input, make_input
from benches.measure import in_turns
from benches.peers.esker import Esker
from benches.peers.lance_tables import DEFAULT_FILE_VERSION, FILE_VERSIONS
from benches.peers.parquet import Parquet
from benches.peers.peer import Peer, Unavailable
from benches.peers.pylance import Pylance
from benches.peers.vortex import Vortex
from benches.results import BASE, EXTRA, Results
from benches.verify import WrongResult, verify

MAKERS: dict[str, Callable[[str], Peer]] = {
    "esker": lambda version: Esker(file_version=version),
    "esker, fsync": lambda version: Esker(file_version=version, durable=True),
    "pylance": lambda version: Pylance(file_version=version),
    "pylance 2.1": lambda _: Pylance(file_version="2.1", name="pylance 2.1"),
    "parquet": lambda _: Parquet(),
    "parquet zstd": lambda _: Parquet(compression="zstd"),
    "vortex": lambda _: Vortex(),
}
"""Each makes an engine; those that write Lance files are told the file version, but one that writes an older one."""

DEFAULT = list(MAKERS)
"""The engines that take part unless others are named."""


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benches", description="esker beside its peers, in one run")
    parser.add_argument("--size", choices=list(SIZES), default="small", help="how large the inputs are")
    parser.add_argument("--rows", type=int, help="rows of the table of numbers, instead of --size; the others follow")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of measurements, after the warm-up")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("bench-results"), help="folder for the JSON and the chart")
    parser.add_argument("--scratch", type=Path, help="folder for the tables, on the disk to measure; default: --output")
    parser.add_argument("--inputs", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--cases", nargs="+", choices=["size", *(case.name for case in cases.CASES)])
    parser.add_argument("--engines", nargs="+", choices=list(MAKERS), default=DEFAULT)
    parser.add_argument(
        "--version",
        nargs="+",
        choices=FILE_VERSIONS,
        default=[DEFAULT_FILE_VERSION],
        help="of the Lance files, a run each",
    )
    return parser.parse_args(arguments)


def available(names: list[str], version: str, results: Results) -> dict[str, Peer]:
    """The engines that are installed; why others are not is noted."""
    peers: dict[str, Peer] = {}
    for name in names:
        try:
            peers[name] = MAKERS[name](version)
        except Unavailable as error:
            results.absent["", "", name] = str(error)
    return peers


def write_tables(
    peers: dict[str, Peer], data: Input, folder: Path, seed: int, results: Results
) -> dict[str, cases.Subject]:
    """Write the input with each engine, verify what it reads back, note its size.

    An engine that cannot hold the input, or that returns other rows, takes no further part with it.
    """
    subjects = {}
    for name, peer in peers.items():
        scratch = folder / name.replace(", ", "-").replace(" ", "-")
        scratch.mkdir(parents=True)
        subject = cases.Subject(peer, data, scratch / "table", scratch, seed)
        try:
            peer.write(data.table, subject.path)
            verify(subject)
        except WrongResult as error:
            results.absent[data.name, "", name] = f"WRONG RESULT: {error}"
            continue
        except Exception as error:  # an engine may refuse an input with whatever it raises
            results.absent[data.name, "", name] = f"{type(error).__name__}: {error}"
            continue
        results.sizes[data.name, name] = page_cache.size_of(subject.path)
        subjects[name] = subject
    return subjects


def measure(case: cases.Case, subjects: dict[str, cases.Subject], rounds: int, results: Results, data: str) -> None:
    """Measure one case for all engines in turns."""
    operations = {}
    for name, subject in subjects.items():
        if name in EXTRA and case.name != "write":
            continue
        operation = case.prepare(subject)
        try:
            operation.before()
            operation.run()
            operation.after()
        except Exception as error:  # one engine's failure must not end the run
            results.absent[data, case.name, name] = f"{type(error).__name__}: {error}"
            continue
        operations[name] = operation
    if operations:
        for name, samples in in_turns(operations, rounds).items():
            results.times[data, case.name, name] = samples


def main(arguments: list[str] | None = None) -> int:
    """Run everything and return the exit code: 1 if an engine returned wrong rows."""
    options = parse_arguments(arguments)
    console = Console(highlight=False, width=None if Console().is_terminal else 150)
    options.output.mkdir(parents=True, exist_ok=True)
    for name, value in machine.describe().items():
        console.print(f"[dim]{name:<15}[/dim] {value}")
    wrong = [compare(version, options, console) for version in options.version]
    return 1 if any(wrong) else 0


def compare(version: str, options: argparse.Namespace, console: Console) -> bool:
    """Compare the engines with Lance files of one version; whether one of them returned wrong rows."""
    results = Results(engines=[])
    peers = available(options.engines, version, results)
    results.engines = list(peers)
    rows = options.rows or SIZES[options.size]
    about = {
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine.describe(),
        "file_version": version,
        "engines": {name: {"version": peer.version, "settings": peer.settings} for name, peer in peers.items()},
        "rows": rows,
        "rounds": options.rounds,
        "seed": options.seed,
    }
    for name, peer in peers.items():
        console.print(f"[dim]{name:<15}[/dim] {peer.version}; {peer.settings}")
    chosen = [case for case in cases.CASES if not options.cases or case.name in options.cases]
    with tempfile.TemporaryDirectory(dir=options.scratch or options.output, prefix="tables-") as scratch:
        if any(case.cold for case in chosen) and not page_cache.can_drop(Path(scratch)):
            console.print("[yellow]the page cache cannot be dropped here: no cold cases[/yellow]")
            chosen = [case for case in chosen if not case.cold]
        inputs = {}
        for name in options.inputs:
            with console.status(f"{name}: making the input"):
                data = make_input(name, rows, options.seed)
            inputs[name] = f"{data.about}; {data.table.num_rows:,} rows, {report.size(data.table.nbytes)} in Arrow"
            with console.status(f"{name}: writing and verifying"):
                subjects = write_tables(peers, data, Path(scratch) / name, options.seed, results)
            for case in chosen:
                with console.status(f"{name}: {case.title}"):
                    measure(case, subjects, options.rounds, results, name)
            console.print(f"[dim]measured[/dim] {name}")
            cases.remove(Path(scratch) / name)
            del data, subjects
    titles = {} if options.cases and "size" not in options.cases else {"size": "size on disk"}
    titles |= {case.name: case.title for case in chosen}
    report.print_results(console, results, inputs, titles)
    suffix = f"-{version}" if len(options.version) > 1 else ""
    results.save(options.output / f"results{suffix}.json", about)
    if BASE in results.engines and results.peers:
        chart.draw(results, list(inputs), titles, options.output / f"ratios{suffix}.png")
    console.print(f"saved to {options.output}/")
    return any(why.startswith("WRONG RESULT") for why in results.absent.values())
