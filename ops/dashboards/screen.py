"""The figures of a moment as a screen of text, once or drawn again until Ctrl-C."""

import time
from collections.abc import Callable, Collection

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ops.dashboards.figures import Figures
from ops.printable import printable
from ops.usage import OpsError

WIDE = 132
_MOST_FAILURES = 5
_LEFT_OUT = ("partition", "MFU", "data", "silent")
MOST_NODES = 64
"""Nodes that are shown; those without trouble are left out first."""


def render(figures: Figures, *, width: int = WIDE) -> RenderableType:
    """Render a summary, alerts, jobs and nodes; a narrow terminal gets fewer columns of jobs."""
    jobs = _jobs(figures, left_out=() if width >= WIDE else _LEFT_OUT)
    return Group(_summary(figures), *_alerts(figures), jobs, _nodes(figures))


def follow(console: Console, draw: Callable[[], RenderableType], *, every_s: float) -> None:
    """Draw until Ctrl-C; a look that fails is told on the screen, and five in a row end it.

    Raises:
        OpsError: the error of the fifth look without an answer.
    """
    failures = 0
    with Live(draw(), console=console, screen=True, auto_refresh=False) as live:
        try:
            while True:
                live.refresh()
                time.sleep(every_s)
                try:
                    live.update(draw())
                    failures = 0
                except OpsError as error:
                    failures += 1
                    if failures == _MOST_FAILURES:
                        raise
                    live.update(Text(f"{error}\nTried again in {every_s:g} s.", style="yellow"))
        except KeyboardInterrupt:
            return


def _summary(figures: Figures) -> Text:
    states: dict[str, int] = {}
    for node in figures.nodes:
        states[node.state] = states.get(node.state, 0) + 1
    nodes = ", ".join(f"{number} {state}" for state, number in sorted(states.items())) or "none runs"
    return Text(
        f"nodes: {nodes}   jobs: {len(figures.jobs)} running, {figures.pending} pending"
        f" (longest wait {_duration(figures.longest_wait_s)})   {figures.tokens_per_s:,.0f} tokens/s   "
        f"{figures.usd_per_hour:,.2f} USD an hour, {figures.spend_usd:,.0f} this month"
    )


def _alerts(figures: Figures) -> list[Text]:
    found = []
    for alert in figures.alerts:
        rest = ", ".join(
            f"{name} {value}"
            for name, value in sorted(alert.items())
            if name not in ("alertname", "severity")
        )
        words = printable(f"{alert.get('severity', '')}: {alert.get('alertname', '')}: {rest}")
        found.append(Text(words, style="bold red" if alert.get("severity") == "critical" else "yellow"))
    return found


def _jobs(figures: Figures, *, left_out: Collection[str]) -> Table:
    rows = [
        {
            "job": job.job,
            "user": printable(job.user),
            "partition": job.partition,
            "nodes": str(job.nodes),
            "time": _duration(job.seconds),
            "GPUs": _percent(job.gpu_use),
            "workload": printable(job.workload or job.name),
            "step": "" if job.step is None else str(job.step),
            "loss": _number(job.loss, ".3f"),
            "tokens/s": _number(job.tokens_per_s, ",.0f"),
            "MFU": _percent(job.mfu),
            "s/step": _number(job.step_s, ".2f"),
            "data": _percent(job.data_wait),
            "silent": "" if job.silence_s is None else _duration(job.silence_s),
        }
        for job in figures.jobs
    ]
    columns = [name for name in rows[0] if name not in left_out] if rows else ["no job runs"]
    table = _table(columns)
    for row in rows:
        table.add_row(*(row[name] for name in columns))
    return table


def _nodes(figures: Figures) -> Table:
    # Nodes with a reason first, then those that work.
    nodes = sorted(figures.nodes, key=lambda node: (node.reason is None, not node.jobs, node.node))
    table = _table(["node", "state", "job", "GPUs", "hottest", "CPU", "reason"])
    for node in nodes[:MOST_NODES]:
        hottest = "" if node.hottest_c is None else f"{node.hottest_c:.0f} C"
        table.add_row(
            node.node,
            node.state,
            " ".join(node.jobs),
            _percent(node.gpu_use),
            hottest,
            _percent(node.cpu_use),
            printable(node.reason or ""),
        )
    if len(nodes) > MOST_NODES:
        table.caption = f"{len(nodes) - MOST_NODES} more nodes"
    return table


def _table(columns: Collection[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        table.add_column(name, no_wrap=name != "reason")
    return table


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _duration(seconds: float) -> str:
    hours, rest = divmod(int(seconds), 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{left:02}s"
