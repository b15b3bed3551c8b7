"""What the demo shows in the terminal: numbered steps with their time, progress, tables."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from esker.demo.checks import Check

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

HEAT = ((5, "#fffaf0"), (10, "#fdeccb"), (15, "#fbd08f"), (20, "#f3a05c"), (30, "#dc6038"), (float("inf"), "#b3261e"))
"""Minutes of delay below which a cell has a colour."""


class Report:
    """Prints to a terminal, or plainly to a file, and keeps the time of each step."""

    def __init__(self, console: Console | None = None) -> None:
        """Print to ``console``, by default standard output."""
        self.console = console or Console(highlight=False)
        self.seconds: list[tuple[str, float]] = []

    def title(self, title: str, text: str) -> None:
        """The first lines."""
        self.console.print(f"\n[bold]{title}[/bold]\n{text}")

    @contextmanager
    def step(self, title: str, *, spinner: bool = True) -> Iterator[None]:
        """One numbered step, timed, with a spinner unless it draws a progress bar of its own."""
        self.console.print(f"\n[bold blue]{len(self.seconds) + 1}[/bold blue]  [bold]{title}[/bold]")
        started = time.perf_counter()
        with self.console.status("working ...") if spinner else nullcontext():
            yield
        elapsed = time.perf_counter() - started
        self.seconds.append((title, elapsed))
        self.console.print(f"   [dim]{elapsed:.1f} s[/dim]")

    def line(self, text: str) -> None:
        """One line of a step."""
        self.console.print(f"   {text}", soft_wrap=True)

    def code(self, code: str, language: str = "python") -> None:
        """Show the code that does the work."""
        for line in code.strip("\n").splitlines():
            highlighted = Syntax("", language, background_color="default").highlight(line)
            highlighted.rstrip()
            self.console.print(Text("   │ ", style="dim") + highlighted, soft_wrap=True)

    def progress(self, items: Iterable[int], total: int, names: Sequence[str]) -> Iterator[int]:
        """Pass ``items`` through and draw a bar of how many of ``total`` have come."""
        bar = Progress(
            TextColumn("  "),
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self.console,
        )
        with bar:
            task = bar.add_task(names[0], total=total)
            for done, item in enumerate(items, start=1):
                bar.update(task, completed=done, description=names[min(done, len(names) - 1)])
                yield item

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """A table; numbers are set to the right."""
        cells = [[cell if isinstance(cell, str | Text) else f"{cell:,}" for cell in row] for row in rows]
        grid = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
        grid.add_column("")
        for index, name in enumerate(columns):
            numeric = all(str(row[index])[:1] in "-0123456789" for row in cells)
            grid.add_column(name, justify="right" if numeric else "left")
        for row in cells:
            grid.add_row("", *row)
        self.console.print(grid)

    def heat(self, hours: pa.Table) -> None:
        """The mean delay of each hour and month as a grid of coloured cells."""
        cells = {(row["month"], row["hour"]): row["dep_delay"] for row in hours.to_pylist()}
        months = sorted({month for month, _ in cells})
        grid = Table(box=None, header_style="bold", padding=0)
        grid.add_column("   hour ", justify="right", style="bold")
        for month in months:
            grid.add_column(MONTHS[month - 1], justify="right")
        for hour in sorted({hour for _, hour in cells}):
            grid.add_row(f"{hour}:00 ", *(heat_cell(cells.get((month, hour))) for month in months))
        self.console.print(grid)

    def checks(self, checks: Sequence[Check]) -> None:
        """Every check with both sides."""
        self.table(
            ["", "check", "source", "esker"],
            (
                [
                    Text("✓", style="green") if check.passed else Text("✗", style="bold red"),
                    check.name,
                    shorten(check.expected),
                    shorten(check.found),
                ]
                for check in checks
            ),
        )

    def timings(self) -> None:
        """How long each step took."""
        total = sum(seconds for _, seconds in self.seconds)
        self.console.print("\n[bold]How long it took[/bold]")
        self.table(
            ["step", "seconds", ""],
            [
                *((title, f"{seconds:.1f}", "━" * round(40 * seconds / total)) for title, seconds in self.seconds),
                ("all", f"{total:.1f}", ""),
            ],
        )


def heat_cell(minutes: float | None) -> Text:
    """One cell, coloured by its delay."""
    if minutes is None:
        return Text("   · ", style="dim")
    colour = next(colour for below, colour in HEAT if minutes < below)
    ink = "white" if colour == HEAT[-1][1] else "black"
    return Text(f"{whole(minutes):>4} ", style=f"{ink} on {colour}")


def whole(minutes: float) -> str:
    """Minutes without a fraction, and never -0."""
    return str(round(minutes))


def shorten(value: object) -> str:
    """A value as one short cell."""
    if isinstance(value, list):
        return ", ".join(shorten(item) for item in (value if len(value) < 3 else [value[0], "…", value[-1]])) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
