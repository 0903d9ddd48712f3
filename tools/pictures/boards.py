"""`python -m tools.pictures.boards URL FOLDER`: draw a rehearsal's answers to the boards' queries.

It does not need Grafana: a picture has a graph of each panel with data.

Imported by: tools.pictures.screenshots.
"""

from __future__ import annotations

import io
import math
import sys
import time
from pathlib import Path
from typing import Any

from rehearsal.monitoring.boards import board_queries
from rehearsal.monitoring.prometheus import query_range
from training_cluster.paths import ROOT

BOARDS = {"board-cluster": ("Cluster",), "board-jobs": ("Jobs and users", "One job's GPUs")}
"""Boards of each picture, by the picture's name."""
_LEFT_OUT = ("__name__", "instance")
_COLUMNS, _MOST_LINES, _MOST_LABELS, _SPAN_S, _STEP_S = 3, 8, 4, 900, 5

Panel = tuple[str, list[dict[str, Any]]]


def panels_of(url: str, boards: tuple[str, ...]) -> tuple[list[Panel], int]:
    """Return title and series of each panel with data, each title once, and the number of those without."""
    now = time.time()
    found: dict[str, list[dict[str, Any]]] = {}
    without = set[str]()
    for board, panel, query in board_queries():
        if board in boards:
            if answer := query_range(url, query, start=now - _SPAN_S, end=now, step_s=_STEP_S):
                found.setdefault(panel, answer)
            else:
                without.add(panel)
    return list(found.items()), len(without - found.keys())


def draw(url: str, boards: tuple[str, ...]) -> bytes:
    """Draw the panels with data into one PNG."""
    import matplotlib as mpl  # noqa: PLC0415  # takes most of a second

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    panels, without = panels_of(url, boards)
    rows = math.ceil(len(panels) / _COLUMNS)
    figure, axes = plt.subplots(rows, _COLUMNS, figsize=(15, 2.6 * rows), squeeze=False, layout="constrained")
    first = min(float(point[0]) for _, lines in panels for line in lines for point in line["values"])
    for place, (panel, lines) in zip(axes.flat, panels, strict=False):
        for line in lines[:_MOST_LINES]:
            labels = [
                value.replace(str(ROOT), "~/training-cluster")
                for name, value in line["metric"].items()
                if name not in _LEFT_OUT
            ]
            x, y = zip(*((float(at) - first, float(value)) for at, value in line["values"]), strict=True)
            place.plot(x, y, label=" ".join(labels[:_MOST_LABELS]) or panel)
        place.set_title(panel, fontsize=9)
        place.set_ylim(bottom=0)
        place.tick_params(labelsize=7)
        place.legend(fontsize=6, loc="best")
    for place in axes.flat[len(panels) :]:
        place.axis("off")
    names = " and ".join(f'"{each}"' for each in boards)
    title = f"Boards {names} in a rehearsal; panels without data, mostly for lack of a GPU: {without}"
    figure.suptitle(title, fontsize=10)
    figure.supxlabel("seconds", fontsize=8)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=70)
    plt.close(figure)
    return content.getvalue()


if __name__ == "__main__":
    for name, boards in BOARDS.items():
        (Path(sys.argv[2]) / f"{name}.png").write_bytes(draw(sys.argv[1], boards))
