"""A report's curves as a picture."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ops.report.panels import Panel, axis_of, floors_of, has, panels_of, size
from ops.report.record import Run
from ops.usage import OpsError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = ("#0b62c4", "#c2410c", "#0f766e", "#8b2fd6", "#b3195c", "#5c564f")
_MUTED, _FLOOR = "#57606a", "#b42318"
_COLUMNS = 2
_HEADROOM, _MOST_TICKS = 1.03, 6


def draw(runs: Sequence[Run]) -> bytes:
    """A PNG with the panels of the page, over steps.

    Raises:
        OpsError: matplotlib is not installed, or there is nothing to draw.
    """
    panels = panels_of(runs)
    if not panels:
        raise OpsError("report: there is nothing to draw yet: no run has metrics.")
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 (it takes a second to load)
    except ModuleNotFoundError:
        raise OpsError(
            "report: --png needs matplotlib.\n  type:   make setup, or pip install matplotlib"
        ) from None

    columns = min(_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(6.2 * columns, 3.1 * rows + 0.6), dpi=110, layout="constrained")
    places = figure.subplots(rows, columns, squeeze=False).flatten()
    for place, panel in zip(places, panels, strict=False):
        _draw(place, panel, runs)
    for place in places[len(panels) :]:
        place.set_visible(False)
    figure.suptitle(_plain(" beside ".join(run.name for run in runs)), fontweight="bold")
    content = io.BytesIO()
    figure.savefig(content, format="png")
    return content.getvalue()


def _draw(place: Axes, panel: Panel, runs: Sequence[Run]) -> None:
    axis = axis_of(panel) or "step"
    for number, run in enumerate(runs):
        if not has(run, panel):
            continue
        colour, series = _COLOURS[number % len(_COLOURS)], run.series[panel.series]
        place.plot(*_points(run, axis, series.mean), color=colour, linewidth=1.5, label=_plain(run.name))
        if series.low:
            at, low = _points(run, axis, series.low)
            place.fill_between(
                at, low, _points(run, axis, series.high)[1], color=colour, alpha=0.2, linewidth=0
            )
        if axis == "message_bytes":
            _draw_floors(place, run)
        else:
            _draw_marks(place, run, colour if len(runs) > 1 else _MUTED)
    place.set_title(panel.title, loc="left", fontsize=10)
    place.yaxis.set_major_formatter(lambda value, _: panel.shown(value))
    place.tick_params(labelsize=8)
    place.grid(visible=True, alpha=0.3)
    place.spines[["top", "right"]].set_visible(False)
    if panel.from_zero:
        place.set_ylim(0, place.get_ylim()[1] * _HEADROOM)
    if panel.kind == "size":
        top = place.get_ylim()[1]
        step = 2 ** math.ceil(math.log2(top / _MOST_TICKS))
        place.set_yticks([step * number for number in range(int(top // step) + 1)])
    if axis == "message_bytes":
        place.set_xscale("log", base=2)
        place.xaxis.set_major_formatter(lambda value, _: size(value))
    else:
        place.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    if len(runs) > 1:
        place.legend(fontsize=8, frameon=False)


def _points(run: Run, axis: str, values: Sequence[float | None]) -> tuple[list[float], list[float]]:
    there = list(_both(run.axes[axis], values))
    return [at for at, _ in there], [value for _, value in there]


def _both(places: Sequence[Any], values: Sequence[float | None]) -> Iterator[tuple[float, float]]:
    for at, value in zip(places, values, strict=True):
        if at is not None and value is not None:
            yield at, value


def _draw_marks(place: Axes, run: Run, colour: str) -> None:
    for start in run.starts[1:]:
        place.axvline(start.step, color=colour, linewidth=0.8, linestyle="--")
    for checkpoint in run.checkpoints:
        place.plot(
            checkpoint.step,
            0.02,
            marker="^",
            color=colour,
            markersize=4,
            transform=place.get_xaxis_transform(),
        )


def _draw_floors(place: Axes, run: Run) -> None:
    for message_bytes, least in floors_of(run):
        place.axhline(least, color=_FLOOR, linewidth=0.9, linestyle="--")
        text = f" floor {least:g} GB/s at {size(message_bytes)}"
        place.annotate(
            text, (0, least), xycoords=("axes fraction", "data"), va="bottom", fontsize=8, color=_FLOOR
        )


def _plain(text: str) -> str:
    """For matplotlib, which reads what is between dollars as mathematics."""
    return text.replace("$", r"\$")
