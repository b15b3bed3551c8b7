"""The ratios in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from benches.results import BASE, EXTRA, Results


def duration(seconds: float) -> str:
    """Seconds with three digits."""
    for unit, factor in (("s ", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1 or unit == "µs":
            scaled = seconds * factor
            return f"{scaled:.{0 if scaled >= 100 else 1 if scaled >= 10 else 2}f} {unit}"
    raise AssertionError("the last unit takes all")


def size(count: float) -> str:
    """Bytes as megabytes."""
    return f"{count / 1e6:.{0 if count >= 1e8 else 1}f} MB"


def ratio_text(ratio: float | None) -> Text:
    """A ratio, red below 1."""
    if ratio is None:
        return Text("")
    style = "bold red" if ratio < 0.95 else "yellow" if ratio < 1 else "green" if ratio < 2 else "bold green"
    return Text(f"{ratio:.2f}x" if ratio < 10 else f"{ratio:.0f}x", style=style)


def print_results(console: Console, results: Results, inputs: dict[str, str], titles: dict[str, str]) -> None:
    """One table for each input: the times, and beside each peer's time its ratio to ours."""
    for data, about in inputs.items():
        table = Table(title=f"{data}: {about}", title_justify="left", title_style="bold", header_style="bold")
        table.add_column("")
        shown = [engine for engine in results.engines if engine not in EXTRA]
        for engine in shown:
            table.add_column(engine, justify="right")
            if engine != BASE and BASE in shown:
                table.add_column("ratio", justify="right")
        for case, title in titles.items():
            table.add_row(title, *row(results, data, case, shown))
        console.print(table)
        for extra in EXTRA:
            value = results.value(data, "write", extra)
            if value is not None:
                console.print(f"  write with {extra.split(', ')[1]}: {duration(value)}\n")
    print_absent(console, results)
    if BASE in results.engines:
        print_summary(console, results, titles)


def row(results: Results, data: str, case: str, engines: Sequence[str]) -> list[str | Text]:
    """The cells of one case."""
    cells: list[str | Text] = []
    for engine in engines:
        value = results.value(data, case, engine)
        cells.append("-" if value is None else size(value) if case == "size" else duration(value))
        if engine != BASE and BASE in engines:
            cells.append(ratio_text(results.ratio(data, case, engine)))
    return cells


def print_absent(console: Console, results: Results) -> None:
    """Why a number is missing."""
    for (data, case, engine), why in results.absent.items():
        console.print(f"[dim]no {engine} for {data} {case}:[/dim] {why[:200]}", highlight=False)


def print_summary(console: Console, results: Results, titles: dict[str, str]) -> None:
    """The geometric mean over the inputs, and what is below 1."""
    table = Table(title="all inputs, geometric mean of the ratios", title_justify="left", title_style="bold")
    table.add_column("")
    for peer in results.peers:
        table.add_column(peer, justify="right")
    for case, title in titles.items():
        table.add_row(title, *(ratio_text(results.mean_ratio([case], peer)) for peer in results.peers))
    table.add_section()
    table.add_row("all", *(ratio_text(results.mean_ratio(list(titles), peer)) for peer in results.peers))
    console.print(table)
    console.print("* at most a tenth of the table", style="dim")
    console.print("ratio = peer / esker, of medians: above 1 esker is faster or smaller", style="dim")
    inputs = list(dict.fromkeys(data for data, _ in results.sizes))
    for peer in results.peers:
        below = [
            f"{data} {case} {ratio:.2f}"
            for data in inputs
            for case in titles
            if (ratio := results.ratio(data, case, peer)) is not None and ratio < 0.995
        ]
        if below:
            console.print(f"[bold red]below 1.0 of {peer}:[/bold red] {'; '.join(below)}", highlight=False)
