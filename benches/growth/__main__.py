"""Run all series and write the page: `make bench-report`."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

from benches import machine, object_stores, page_cache
from benches.growth import charts, limits, page
from benches.growth.series import ENGINES, Found, Series, all_series, measure, works
from benches.run import MAKERS
from tests.servers import start_s3
from tests.servers.s3 import described

NETWORK_CASES = ["open", "take 100 rows", "take 1 row", "scan", "scan 1 column", "scan with a filter", "first 10 rows"]
PICTURES = "performance"


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benches.growth", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000_000, help="of the largest table (20 GB of disk)")
    parser.add_argument("--output", type=Path, default=Path("docs"), help="folder of performance.md and its pictures")
    parser.add_argument(
        "--scratch", type=Path, help="folder for the tables, on the disk to measure; default: bench-results"
    )
    parser.add_argument("--delay", type=float, default=0.02, help="seconds that a reply of the S3 server takes longer")
    parser.add_argument("--series", nargs="*", help="names of series, all if none; `network` is one")
    parser.add_argument("--seconds", type=float, default=4.0, help="of one kind of work by one engine on one table")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(arguments)


def network(delay_s: float) -> str:
    """The section of the S3 server."""
    cases = [case for case in object_stores.CASES if case.title in NETWORK_CASES]
    with start_s3() as server:
        found = object_stores.run(server, versions=20, rounds=5, delay_s=delay_s, cases=cases)
        return page.network_section(found, delay_s, described())


def saved(series: Series, found: Found) -> dict[str, object]:
    """What is kept beside the page, for whoever wants other ratios."""
    return {
        "axis": series.axis,
        "seconds": [[*key, value] for key, value in found.seconds.items()],
        "file_bytes": [[*key, value] for key, value in found.file_bytes.items()],
        "arrow_bytes": found.arrow_bytes,
    }


def main(arguments: list[str] | None = None) -> int:
    """Run, and write the page."""
    options = parse_arguments(arguments)
    scratch = options.scratch or Path("bench-results")
    scratch.mkdir(parents=True, exist_ok=True)
    about = machine.describe()

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def wanted(name: str) -> bool:
        return not options.series or name in options.series

    say("the machine's own limits")
    speeds = {"memcpy": limits.memcpy_bytes_per_second()}
    disk = limits.disk_bytes_per_second(scratch)
    if disk:
        speeds["disk"] = disk
    peers = {name: MAKERS[name]("2.2") for name in ENGINES}
    engines = "\n".join(f"- {name} {peer.version}; {peer.settings}" for name, peer in peers.items())
    lines = "\n".join(f"- {name.replace('_', ' ')}: {value}" for name, value in about.items())
    from_disk = f" and reads {disk / 1e9:.1f} GB/s from the disk" if disk else ""
    parts = [page.HEAD.format(machine=lines, memcpy=speeds["memcpy"] / 1e9, disk=from_disk, engines=engines)]
    results: dict[str, object] = {"machine": about, "limits": speeds}
    with tempfile.TemporaryDirectory(dir=scratch, prefix="growth-") as folder:
        works_here = works(cold=page_cache.can_drop(Path(folder)))
        if shutil.disk_usage(folder).free < options.rows * 200:
            raise SystemExit(
                f"expected {options.rows * 200 / 1e9:.0f} GB of free disk, found less: give --rows or --scratch"
            )
        for series in all_series(options.rows):
            if not wanted(series.name):
                continue
            found = measure(series, Path(folder), options.seed, say, works_here, options.seconds)
            picture = Path(PICTURES) / f"{series.name}.svg"
            charts.draw(series, found, works_here, speeds, options.output / picture)
            parts.append(page.series_section(series, found, works_here, speeds, str(picture)))
            results[series.name] = saved(series, found)
    if wanted("network"):
        say("a store behind a network")
        parts.append(network(options.delay))
    (options.output / "performance.md").write_text("\n".join([*parts, page.TAIL]), encoding="utf-8")
    (scratch / "growth.json").write_text(json.dumps(results, indent=1, default=str), encoding="utf-8")
    say(f"written: {options.output / 'performance.md'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
