"""`Output`: how commands print: tables for people, JSON for scripts."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from ..exceptions import UnsupportedError
from ..progress import Done, Tally, Unit
from .terminal_text import printable, printable_json, without_nan

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress, TaskID


class _Bar:
    """Draws what is done, as `esker.progress.Progress` is told of it."""

    def __init__(self, drawn: Progress, task: TaskID) -> None:
        self._drawn = drawn
        self._task = task

    def report(self, done: Done, /) -> None:
        # Without a total the bar itself says nothing of how much there was.
        step = f"{done.step} ({done.count:,})" if done.total is None and done.count else done.step
        self._drawn.update(self._task, description=step, completed=done.count, total=done.total)


class Output:
    """Standard output, as text or as JSON.

    Args:
        as_json: Whether to print JSON, for scripts.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def json(self, value: Any) -> None:
        """Prints a value as JSON: times as ISO 8601, bytes as base64, and NaN and infinities as texts."""
        # An output that cannot write a character gets its escape.
        escapes = not (sys.stdout.encoding or "utf-8").lower().startswith("utf")
        text = json.dumps(without_nan(value), default=_plain, ensure_ascii=escapes, allow_nan=False)
        print(printable_json(text))

    def line(self, text: str) -> None:
        """Prints a line, with characters that control a terminal escaped."""
        print(printable(text), flush=True)

    def facts(self, title: str, facts: dict[str, str]) -> None:
        """Prints names and values, one per line."""
        from rich.table import Table
        from rich.text import Text

        table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
        table.add_column(style="bold")
        table.add_column(overflow="fold")
        for name, value in facts.items():
            # As text: a value may look like markup.
            table.add_row(Text(printable(name)), Text(printable(value)))
        self._title(title)
        self.print(table)

    def table(self, title: str | None, columns: Sequence[tuple[str, bool]], rows: Iterable[Sequence[str]]) -> None:
        """Prints a table; each column is its name and whether it holds numbers."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for name, is_number in columns:
            # A name and its type are on two lines.
            header = "\n".join(printable(part) for part in name.rsplit("\n", 1))
            table.add_column(Text(header), justify="right" if is_number else "left", overflow="fold")
        for row in rows:
            table.add_row(*(Text(printable(cell)) for cell in row))
        self._title(title)
        self.print(table)

    def records(self, title: str | None, names: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Prints rows one below the other, one value per line, for tables that are wider than the terminal."""
        self._title(title)
        for number, row in enumerate(rows, start=1):
            self.facts(f"row {number}", dict(zip(names, row, strict=True)))

    def fits(self, columns: Sequence[tuple[str, bool]], rows: Sequence[Sequence[str]]) -> bool:
        """Whether a table fits the width of the terminal, if each cell gets at least a third of its length."""
        longest = [
            max(map(len, cells)) for cells in zip([name.split("\n")[0] for name, _ in columns], *rows, strict=True)
        ]
        return sum(max(4, length // 3) + 2 for length in longest) <= self._console().width

    def _title(self, title: str | None) -> None:
        from rich.text import Text

        if title:
            self._console().print(Text(printable(title), style="bold"), soft_wrap=True)

    def print(self, what: RenderableType) -> None:
        """Prints an object of rich."""
        self._console().print(what)

    @contextmanager
    def progress(self, what: str, total: int | None = None, *, unit: Unit = "parts") -> Iterator[Tally]:
        """A progress bar on standard error; None if that is not a terminal, or with JSON.

        Without a total it only shows that something is running. Its `progress` is for what reports by itself.
        """
        if self.as_json or not sys.stderr.isatty():
            yield Tally(None, what)
            return
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as drawn:
            yield Tally(_Bar(drawn, drawn.add_task(what, total=total)), what, unit=unit, total=total)

    @staticmethod
    def _console() -> Console:
        try:
            from rich.console import Console
        except ImportError as error:
            raise UnsupportedError('printing for people needs rich: pip install "esker[cli]", or use --json') from error

        class Piped(Console):
            def on_broken_pipe(self) -> None:
                # Whoever runs the command says what a closed pipe means; rich would leave with 1.
                raise

        # A pipe has no width: lines are cut for terminals only.
        return Piped(width=None if sys.stdout.isatty() else 160, highlight=False)


def size_text(size: int | None) -> str:
    """A number of bytes as text for people.

    Example:
        >>> from esker.cli.output import size_text
        >>> size_text(532), size_text(1536), size_text(None)
        ('532 B', '1.5 KiB', '?')
    """
    if size is None:
        return "?"
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def cell_text(value: Any, width: int = 60) -> str:
    """A value of a table as text for people, truncated to a width."""
    if value is None:
        return "null"
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= width else text[: width - 1] + "…"


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return str(value)
