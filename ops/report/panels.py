"""Curves of a report, which page and terminal share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ops.report.record import Run

_UNITS = (("GiB", 30), ("MiB", 20), ("KiB", 10))


def count(value: float) -> str:
    """Format a large number: 770,920."""
    return f"{value:,.0f}"


def share(value: float) -> str:
    """Format a share in per cent."""
    return f"{value:.1%}"


def size(value: float) -> str:
    """Format a number of bytes: 1.5 GiB."""
    for unit, shift in _UNITS:
        if value >= 1 << shift:
            return f"{value / (1 << shift):.3g} {unit}"
    return f"{value:.0f} B"


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A chart of one series."""

    series: str
    """Name of the series in a run's record."""
    title: str
    kind: str
    """Format of the values on the page: number, count, share or size."""
    shown: Callable[[float], str]
    from_zero: bool = True


PANELS = (
    Panel(series="loss", title="Loss", kind="number", shown="{:.4g}".format, from_zero=False),
    Panel(series="val_loss", title="Validation loss", kind="number", shown="{:.4g}".format, from_zero=False),
    Panel(series="grad_norm", title="Gradient norm", kind="number", shown="{:.3g}".format),
    Panel(series="tokens_per_s", title="Tokens per second", kind="count", shown=count),
    Panel(series="seq_per_s", title="Sequences per second", kind="count", shown=count),
    Panel(series="mfu", title="Model FLOPs utilisation (MFU)", kind="share", shown=share),
    Panel(series="data_share", title="Share of a step spent waiting for data", kind="share", shown=share),
    Panel(series="memory_bytes", title="Peak memory of the first rank", kind="size", shown=size),
    Panel(series="learning_rate", title="Learning rate", kind="number", shown="{:.3g}".format),
    Panel(
        series="busbw_gb_per_s",
        title="Bus bandwidth of the all-reduce, GB/s",
        kind="number",
        shown="{:.4g}".format,
    ),
)


def panels_of(runs: Sequence[Run]) -> list[Panel]:
    """Return the panels for which at least one run has values."""
    return [panel for panel in PANELS if any(has(run, panel) for run in runs)]


def has(run: Run, panel: Panel) -> bool:
    """Return True if a run has values for a panel."""
    return panel.series in run.series and bool(run.series[panel.series].values)


def axis_of(panel: Panel) -> str | None:
    """Return the only axis of a panel; None if the reader chooses step, time or tokens."""
    return "message_bytes" if panel.series == "busbw_gb_per_s" else None


def floors_of(run: Run) -> list[tuple[float, float]]:
    """Return (message size in bytes, minimum bus bandwidth in GB/s) of as many healthy nodes."""
    nodes = run.starts[-1].node_count if run.starts else 0
    fields = [entry.split(":") for entry in run.settings.get("NCCL_FLOORS", "").split()]
    return [
        (float(each[1]) * 2**30, float(each[2]))
        for each in fields
        if len(each) == 3 and each[0] == str(nodes)  # noqa: PLR2004 (nodes, GiB, GB/s)
    ]
