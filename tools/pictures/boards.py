"""`python -m tools.pictures.boards URL FILE`: what a rehearsal's Prometheus answers to the boards' queries.

Grafana itself is not here: each graph of the boards "Cluster" and "Jobs and users" that has data, drawn.
"""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path
from typing import Any

import matplotlib as mpl

from rehearsal.monitoring.boards import board_queries
from rehearsal.monitoring.prometheus import query_range

mpl.use("Agg")
import matplotlib.pyplot as plt

BOARDS = ("Cluster", "Jobs and users")
_LEFT_OUT = ("__name__", "instance")
_COLUMNS, _MOST_LINES, _SPAN_S, _STEP_S = 3, 8, 900, 5


def series(url: str) -> list[tuple[str, str, list[dict[str, Any]]]]:
    """Ask the queries of the boards; return board, panel and the series of those with data."""
    now = time.time()
    found = []
    for board, panel, query in board_queries():
        if board in BOARDS:
            answer = query_range(url, query, start=now - _SPAN_S, end=now, step_s=_STEP_S)
            if answer:
                found.append((board, panel, answer))
    return found


def draw(url: str, file: Path) -> None:
    """Draw all of them into one picture."""
    panels = series(url)
    rows = math.ceil(len(panels) / _COLUMNS)
    figure, axes = plt.subplots(rows, _COLUMNS, figsize=(15, 2.6 * rows), squeeze=False, layout="constrained")
    first = min(float(point[0]) for *_, lines in panels for line in lines for point in line["values"])
    for place, (board, panel, lines) in zip(axes.flat, panels, strict=False):
        for line in lines[:_MOST_LINES]:
            labels = {name: value for name, value in line["metric"].items() if name not in _LEFT_OUT}
            x, y = zip(*((float(at) - first, float(value)) for at, value in line["values"]), strict=True)
            place.plot(x, y, label=" ".join(list(labels.values())[:4]) or panel)
        place.set_title(f"{board}: {panel}", fontsize=9)
        place.set_ylim(bottom=0)
        place.tick_params(labelsize=7)
        place.legend(fontsize=6, loc="best")
    for place in axes.flat[len(panels) :]:
        place.axis("off")
    figure.supxlabel("seconds", fontsize=8)
    figure.savefig(file, dpi=70)
    plt.close(figure)


if __name__ == "__main__":
    draw(sys.argv[1], Path(sys.argv[2]))
