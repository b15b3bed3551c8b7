"""A series as one picture: a panel for each kind of work, a line for each engine and for the machine's own limit."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from benches.chart import COLOURS, INK
from benches.growth.series import Found, Series
from benches.growth.work import Work

ACROSS = 4


def limit_seconds(found: Found, value: int, work: Work, limits: dict[str, float]) -> float | None:
    """What the machine alone needs for the bytes of the table: to copy them in memory, or to read esker's files."""
    speed = limits.get(work.limit)
    if not speed:
        return None
    size = found.arrow_bytes[value] if work.limit == "memcpy" else found.file_bytes[value, "esker"]
    return size / speed


def draw(series: Series, found: Found, works: list[Work], limits: dict[str, float], path: Path) -> None:
    """Write the picture as SVG, the same bytes for the same figures."""
    down = -(-len(works) // ACROSS)
    with mpl.rc_context({"svg.hashsalt": "esker", "svg.fonttype": "none"}):
        figure = Figure(figsize=(3.4 * ACROSS, 2.9 * down + 0.5), facecolor="white")
        canvas = FigureCanvasSVG(figure)
        panels = figure.subplots(down, ACROSS, squeeze=False).flat
        values = list(series.shapes)
        for panel, work in zip(panels, works, strict=False):
            for engine, colour in zip(series.engines, COLOURS, strict=False):
                times = [found.seconds[value, work.name, engine] * 1e3 for value in values]
                panel.plot(values, times, marker="o", markersize=4, color=colour, label=engine)
            bounds = [limit_seconds(found, value, work, limits) for value in values]
            if all(bound is not None for bound in bounds):
                times = [bound * 1e3 for bound in bounds if bound is not None]
                panel.plot(values, times, linestyle="--", color=INK, linewidth=1, label=work.limit)
            panel.set_xscale("log")
            panel.set_yscale("log")
            panel.set_title(work.title, loc="left", fontsize=9, color=INK)
            panel.set_ylabel("ms", fontsize=8)
            panel.tick_params(labelsize=7, colors=INK)
            panel.grid(color="#e6eaee")
            panel.legend(fontsize=7, frameon=False)
        for panel in list(panels):
            panel.set_visible(False)
        figure.suptitle(f"{series.title}: {series.axis}", x=0.01, ha="left", fontsize=11)
        figure.tight_layout(rect=(0, 0, 1, 0.96))
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as out:
            canvas.print_svg(out, metadata={"Date": None})
