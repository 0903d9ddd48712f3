"""Compares a run with the figures that others published for its family."""

from dataclasses import dataclass

from ops.report.record import Figure, Run

# Names in figures.json -> names in a run's summary.
_MEASURES = {
    "tokens_per_s": "tokens_per_s",
    "seq_per_s": "seq_per_s",
    "loss": "last_loss",
    "val_loss": "last_val_loss",
    "mfu": "mfu",
    "busbw_gb_per_s": "busbw_gb_per_s",
}
_GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A published figure beside the run's own."""

    what: str
    published: str
    own: str
    share: float | None
    """The run's figure divided by the published one; None if that would mislead."""
    remark: str
    source: str


def compare(run: Run) -> list[Comparison]:
    """Return a comparison for each published figure of the run's family, in the order of figures.json."""
    return [_beside(run, figure) for figure in run.figures]


def _beside(run: Run, figure: Figure) -> Comparison:
    own = _own(run, figure)
    obstacle = "a rehearsal on other hardware: not comparable" if run.is_rehearsal else ""
    again = "" if figure.reproduced else "not reproduced here"
    nodes = f", {figure.nodes} node{'s' * (figure.nodes > 1)}" if figure.nodes else ""
    return Comparison(
        what=f"{figure.what}, {figure.family}{nodes}",
        published=f"{_number(figure.value)} {figure.unit}",
        own="no measurement" if own is None else _number(own),
        share=None if own is None or obstacle or not figure.value else own / figure.value,
        remark="; ".join(filter(None, (obstacle, again))),
        source=figure.source,
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"  # noqa: PLR2004 (four digits)


def _own(run: Run, figure: Figure) -> float | None:
    if figure.message_gib is None:
        value: float | None = getattr(run.summary, _MEASURES.get(figure.metric, ""), None)
        return value
    if figure.metric not in run.series:
        return None
    by_size = dict(zip(run.axes["message_bytes"], run.series[figure.metric].mean, strict=True))
    return by_size.get(figure.message_gib * _GIB)
