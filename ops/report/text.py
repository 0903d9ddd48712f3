"""Prints a report on the terminal."""

import shlex
from collections.abc import Sequence
from itertools import pairwise

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from ops.options import print_table
from ops.report import tables
from ops.report.goodput import goodput_table
from ops.report.panels import Panel, has, panels_of
from ops.report.record import Run
from ops.report.run_cost import cost_of
from training_cluster.stack_names import DEFAULT_CLUSTER

_BARS = " ▁▂▃▄▅▆▇█"
_WIDTH, _HEIGHT = 60, 4
# Panels that the terminal shows.
_DRAWN = ("loss", "tokens_per_s", "busbw_gb_per_s")


def bars(values: Sequence[float], *, least: float) -> list[str]:
    """Draw values as bars of means, in lines from the top down; `least` is the value without height."""
    count = min(_WIDTH, len(values))
    edges = [len(values) * each // count for each in range(count + 1)]
    means = [sum(values[a:b]) / (b - a) for a, b in pairwise(edges)]
    most, full = max(means), len(_BARS) - 1
    # Even the smallest value gets a visible bar.
    levels = [max(1, round((mean - least) / ((most - least) or 1.0) * full * _HEIGHT)) for mean in means]
    return [
        "".join(_BARS[min(full, max(0, level - full * line))] for level in levels)
        for line in reversed(range(_HEIGHT))
    ]


def print_report(runs: Sequence[Run], console: Console) -> None:
    """Print the runs side by side, then the details of each."""
    for run in runs:
        for warning in tables.warnings_of(run):
            console.print(Text(f"{run.name}: {warning}", style="yellow"))
    _print(tables.summary_table(runs), console, titled=False)
    _print(goodput_table(runs), console, titled=False)
    for panel in panels_of(runs):
        if panel.series in _DRAWN:
            _print_curves(panel, [run for run in runs if has(run, panel)], console)
    for run in runs:
        _print_run(run, console, is_only=len(runs) == 1)
    settings = tables.settings_table(runs)
    if len(runs) > 1:
        rows = tuple(row for number, row in enumerate(settings.rows) if number in settings.different)
        settings = tables.Table(
            title="Settings that differ", header=settings.header, rows=rows, note=settings.note
        )
        _print(settings, console)


def _print_curves(panel: Panel, runs: Sequence[Run], console: Console) -> None:
    values = [value for run in runs for value in run.series[panel.series].values]
    least = 0.0 if panel.from_zero else min(values)
    for run in runs:
        own = run.series[panel.series].values
        console.print(Text(f"{panel.title}{f', {run.name}' if len(runs) > 1 else ''}", style="bold"))
        lines = bars(own, least=least)
        for number, line in enumerate(lines):
            ends = {0: f"  highest {panel.shown(max(own))}", len(lines) - 1: f"  last {panel.shown(own[-1])}"}
            console.print(Text(f"  {line}{ends.get(number, '')}"))
    console.print()


def _print_run(run: Run, console: Console, *, is_only: bool) -> None:
    if not is_only:
        console.print(Text(run.name, style="bold"))
    _print(tables.starts_table(run), console)
    _print(tables.checkpoints_table(run), console)
    cost = cost_of(run)
    if cost.usd is not None:
        per = cost.usd_per_million_tokens
        rate = "" if per is None else f", {per:.4g} USD a million tokens"
        console.print(Text(f"Cost: {cost.usd:,.2f} USD{rate}"))
    for line in cost.lines:
        console.print(Text(f"  {line}"))
    _print(tables.profiles_table(run), console)
    _print(tables.published_table(run), console)
    console.print()


def _print(table: tables.Table, console: Console, *, titled: bool = True) -> None:
    if not table.rows:
        return
    if titled:
        console.print(Text(table.title, style="bold"))
    shown = RichTable(*table.header, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in table.rows:
        shown.add_row(*map(Text, row))
    print_table(shown, console)
    if table.note:
        console.print(Text(table.note))


def page_command(asked: Sequence[str], runs: Sequence[Run], cluster_name: str) -> str:
    """Return the command that writes the page of the same runs."""
    name = "-beside-".join(f"{run.workload}-{run.run}" for run in runs[:2])
    cluster = ["--cluster", cluster_name] if cluster_name != DEFAULT_CLUSTER else []
    return shlex.join(["trainctl", "report", *asked, *cluster, "--html", f"{name}.html"])
