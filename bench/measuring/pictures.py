"""Drawing of a benchmark's picture (PNG)."""

from __future__ import annotations

import os
from pathlib import Path

from bench.measuring.result import Bars, Lines
from training_cluster.paths import ROOT

_BLUE, _GOAL = "#1f6feb", "#cf222e"


def draw(picture: Bars | Lines, path: Path) -> None:
    """Draw a picture and write it to a file."""
    os.environ.setdefault("MPLCONFIGDIR", str(ROOT / ".cache" / "matplotlib"))
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    tall = 1.2 + 0.5 * len(picture.bars) if isinstance(picture, Bars) else 4
    figure, axes = plt.subplots(figsize=(7.5, tall), dpi=110, layout="constrained")
    if isinstance(picture, Bars):
        _bars(axes, picture)
    else:
        for name, values in picture.lines.items():
            axes.plot(picture.x, values, marker="o", linewidth=2, label=name)
        axes.set(xlabel=picture.x_label, ylabel=picture.y_label, ylim=(0, None))
        axes.legend(frameon=False)
    axes.set_title(picture.title, loc="left", fontsize=11)
    axes.grid(visible=True, alpha=0.25)
    for spine in ("top", "right"):
        axes.spines[spine].set_visible(False)
    figure.savefig(path)
    plt.close(figure)


def _bars(axes: object, picture: Bars) -> None:
    from matplotlib.axes import Axes  # noqa: PLC0415

    assert isinstance(axes, Axes)
    names = [each.name for each in picture.bars]
    medians = [each.median for each in picture.bars]
    below = [each.median - each.low for each in picture.bars]
    above = [each.high - each.median for each in picture.bars]
    axes.barh(names, medians, xerr=[below, above], color=_BLUE, height=0.55, capsize=3)
    for place, each in enumerate(picture.bars):
        axes.annotate(
            f" {_shown(each.median)}",
            (each.high, place),
            va="center",
            fontsize=9,
            xytext=(3, 0),
            textcoords="offset points",
        )
    axes.invert_yaxis()
    axes.set_xlabel(picture.x_label)
    axes.margins(x=0.12)
    if picture.goal is not None:
        axes.axvline(picture.goal, color=_GOAL, linestyle="--", linewidth=1.5)
        axes.annotate(
            f"goal {picture.goal:g}",
            (picture.goal, 1),
            xycoords=("data", "axes fraction"),
            color=_GOAL,
            fontsize=9,
            xytext=(3, -9),
            textcoords="offset points",
        )


def _shown(number: float) -> str:
    """Format a number with three digits and without a power of ten."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"  # noqa: PLR2004
