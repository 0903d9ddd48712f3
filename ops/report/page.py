"""Renders a report as one HTML page that loads nothing else."""

import datetime
import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from ops.report import tables
from ops.report.goodput import goodput_table
from ops.report.html import STYLE, digest, table_html
from ops.report.panels import Panel, axis_of, count, floors_of, has, panels_of, size
from ops.report.record import Checkpoint, Run, Start
from ops.report.run_cost import cost_of
from ops.usage import OpsError
from training_cluster.paths import ROOT

_HERE = Path(__file__).parent
_UPLOT = ROOT / "node_modules" / "uplot"
# Limit for a chart's table, since the page has the curve, and the run's metrics.jsonl every value.
_MOST_ROWS = 25


def render_page(runs: Sequence[Run]) -> str:
    """Render the whole page. Raises OpsError: the library that draws the curves is not installed."""
    library, style = _library()
    style += STYLE
    script = f"{library}\n{(_HERE / 'page.js').read_text()}"
    names = ", ".join(run.name for run in runs)
    panels = panels_of(runs)
    return Template((_HERE / "page.html").read_text()).substitute(
        policy=f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src {digest(style)}; "
        f"script-src {digest(script)}",
        title=escape(f"{names}: training report"),
        style=style,
        heading=" beside ".join(escape(run.name) for run in runs),
        read=f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M}",
        warnings="\n".join(
            f'<p class="warning">{escape(_of(run, runs) + warning)}</p>'
            for run in runs
            for warning in tables.warnings_of(run)
        ),
        summary=_summary(runs),
        key=_key(panels),
        charts="\n".join(_chart(panel, runs) for panel in panels) or "<p>There is nothing to draw yet.</p>",
        published=_each(
            runs, lambda run: table_html(tables.published_table(run)), "No published figure for this family."
        ),
        cost=table_html(goodput_table(runs)) + _each(runs, _cost, ""),
        starts=_each(runs, lambda run: table_html(tables.starts_table(run)), "The training was not started."),
        checkpoints=_each(runs, lambda run: table_html(tables.checkpoints_table(run)), "There are none."),
        profiles=_each(
            runs, lambda run: table_html(tables.profiles_table(run)), "No step was profiled (PROFILE_STEPS)."
        ),
        configuration=table_html(tables.settings_table(runs)) or "<p>The run recorded no settings.</p>",
        data=_data(runs, panels),
        script=script,
    )


def _library() -> tuple[str, str]:
    """Return uPlot's code, with its licence, and its style. Raises OpsError."""
    try:
        licence = (_UPLOT / "LICENSE").read_text()
        code = (_UPLOT / "dist" / "uPlot.iife.min.js").read_text()
        version = json.loads((_UPLOT / "package.json").read_text())["version"]
        return f"/* uPlot {version}\n{licence}*/\n{code}", (_UPLOT / "dist" / "uPlot.min.css").read_text()
    except FileNotFoundError:
        raise OpsError(
            "report: the library that draws the page's curves is not installed (node_modules/uplot).\n"
            "  type:   npm ci"
        ) from None


def _of(run: Run, runs: Sequence[Run]) -> str:
    return f"{run.name}: " if len(runs) > 1 else ""


def _each(runs: Sequence[Run], shown: Any, nothing: str) -> str:
    parts = []
    for run in runs:
        heading = f"<h3>{escape(run.name)}</h3>" if len(runs) > 1 else ""
        parts.append(heading + (shown(run) or f"<p>{nothing}</p>"))
    return "\n".join(parts)


def _key(panels: Sequence[Panel]) -> str:
    said = "Drag over a chart to zoom in."
    if any(axis_of(panel) is None for panel in panels):
        said += " Pale band: range of the steps that a point represents."
        said += " Dashed line: restart. Triangle: checkpoint."
    if any(axis_of(panel) for panel in panels):
        said += " Red dashed line: minimum of healthy nodes of this family."
    return said


def _summary(runs: Sequence[Run]) -> str:
    table = tables.summary_table(runs)
    if len(runs) > 1:
        return table_html(table)
    tiles = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in table.rows
    )
    return f'<dl class="tiles">{tiles}</dl>'


def _cost(run: Run) -> str:
    cost = cost_of(run)
    per = cost.usd_per_million_tokens
    rate = "" if per is None else f", {per:.4g} USD a million tokens"
    said = [f"<p><strong>{cost.usd:,.2f} USD</strong>{rate}</p>"] if cost.usd is not None else []
    said += [f'<p class="muted">{escape(line)}</p>' for line in cost.lines]
    return "\n".join(said)


def _chart(panel: Panel, runs: Sequence[Run]) -> str:
    drawn = [run for run in runs if has(run, panel)]
    axis = axis_of(panel) or "step"
    rows = [row for run in drawn for row in _values(run, panel, axis)]
    header = ("at", "run", "mean", "lowest", "highest")
    data = tables.Table(title=f"{panel.title}, values", header=header, rows=tuple(rows))
    ends = "; ".join(_reach(run, panel) for run in drawn)
    label = escape(f"{panel.title}: {ends}. The table below has values.", quote=True)
    return (
        f'<figure id="chart-{panel.series}"><h3>{escape(panel.title)}</h3><p class="values"></p>'
        f'<div class="plot" role="img" aria-label="{label}"></div>'
        f"<details><summary>Values as a table</summary>{table_html(data)}</details></figure>"
    )


def _reach(run: Run, panel: Panel) -> str:
    values = run.series[panel.series].values
    return f"{run.name} from {panel.shown(values[0])} to {panel.shown(values[-1])}"


def _values(run: Run, panel: Panel, axis: str) -> list[tuple[str, ...]]:
    series, places = run.series[panel.series], run.axes[axis]
    at = [index for index, value in enumerate(series.mean) if value is not None]
    every = max(1, len(at) // _MOST_ROWS)
    write = size if axis == "message_bytes" else count
    found = []
    for index in sorted({*at[::every], at[-1]}):
        spans = (series.mean, series.low or series.mean, series.high or series.mean)
        cells = ["" if (value := span[index]) is None else panel.shown(value) for span in spans]
        found.append((write(places[index] or 0), run.name, *cells))
    return found


def _data(runs: Sequence[Run], panels: Sequence[Panel]) -> str:
    """Return the data of the page's script; no character in it can end its HTML element."""
    data = {
        "runs": [_drawn(run) for run in runs],
        "panels": [
            {"series": each.series, "kind": each.kind, "from_zero": each.from_zero, "axis": axis_of(each)}
            for each in panels
        ],
    }
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _drawn(run: Run) -> dict[str, Any]:
    begin = run.begin
    restarts = run.starts[1:] if run.start_count == len(run.starts) else run.starts
    marks: dict[str, Sequence[Start | Checkpoint]] = {"restarts": restarts, "checkpoints": run.checkpoints}
    return {
        "name": run.name,
        "axes": run.axes,
        "series": {name: series.model_dump() for name, series in run.series.items()},
        "floors": floors_of(run),
        **{
            name: [
                {"step": mark.step, "seconds": (mark.time - begin).total_seconds() if begin else None}
                for mark in there
            ]
            for name, there in marks.items()
        },
    }
