"""The ratios as one picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from benches.results import Results

INK = "#22313f"
COLOURS = ("#2f6db3", "#e0903a", "#5a9c62", "#9a6bb0")


def draw(results: Results, inputs: list[str], titles: dict[str, str], path: Path) -> None:
    """Draw one panel for each input, one bar for each case and peer, on a logarithmic axis around 1.

    Args:
        results: what was measured.
        inputs: the inputs, a panel each.
        titles: the cases, from top to bottom.
        path: the PNG file to write.
    """
    peers = results.peers
    figure = Figure(figsize=(4.2 * len(inputs) + 2.2, 0.28 * len(titles) * len(peers) + 2.4), facecolor="white")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(inputs), sharey=True, squeeze=False)[0]
    height = 0.8 / len(peers)
    for panel, data in zip(panels, inputs, strict=True):
        for index, peer in enumerate(peers):
            ratios = np.array([results.ratio(data, case, peer) or np.nan for case in titles], dtype=float)
            places = np.arange(len(titles)) + (index - (len(peers) - 1) / 2) * height
            panel.barh(places, np.log2(ratios), height=height, color=COLOURS[index % len(COLOURS)], label=peer)
            for place, ratio in zip(places, ratios, strict=True):
                if not np.isnan(ratio):
                    side = "left" if ratio >= 1 else "right"
                    offset = 0.06 if ratio >= 1 else -0.06
                    panel.text(np.log2(ratio) + offset, place, f"{ratio:.1f}", ha=side, va="center", fontsize=7.5)
        panel.axvline(0, color=INK, linewidth=1)
        panel.margins(x=0.18)
        panel.set_title(data, loc="left", fontweight="bold", color=INK)
        panel.set_yticks(range(len(titles)), list(titles.values()))
        panel.xaxis.set_major_formatter(FuncFormatter(lambda power, _: f"{2.0**power:g}x"))
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.tick_params(length=0, colors=INK)
        panel.grid(axis="x", color="#e6eaee")
        panel.set_axisbelow(True)
        for spine in panel.spines.values():
            spine.set_visible(False)
    panels[0].invert_yaxis()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(peers), frameon=False)
    figure.suptitle("esker beside its peers: to the right of the line esker is faster, or smaller", x=0.01, ha="left")
    figure.tight_layout(rect=(0, 0.05, 1, 0.98))
    figure.savefig(path, dpi=120)
