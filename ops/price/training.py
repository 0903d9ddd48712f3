"""Calculates the cost of a million tokens and of an epoch from the speed of a run."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from ops.price.quote import Quote
from ops.report.record import Figure, Run
from ops.report.source import read_runs
from ops.usage import UsageError
from training_cluster.flags.settings import Settings
from training_cluster.paths import TRAINING

_MILLION, _HOUR_S = 1_000_000, 3600


@dataclass(frozen=True, kw_only=True)
class Speed:
    """Speed of a training, all nodes together."""

    what: str
    per_s: float
    nodes: int
    unit: str = "tokens"
    is_measured: bool = True
    """True for a run of the user, False for a published figure."""


@dataclass(frozen=True, kw_only=True)
class TrainingCost:
    """Cost of a training, including everything that runs in addition to the nodes."""

    speed: Speed
    usd_per_hour: float
    usd_per_million: float
    usd_per_epoch: float | None
    """Cost of an epoch; None if the size of the data set is unknown."""
    hours_per_epoch: float | None


def known_speeds(settings: Settings, *, run: str | None, tokens_per_s: float | None) -> list[Speed]:
    """Return the speed of a run or the given one; else the published ones. Errors as in read_runs."""
    if run:
        return [measured_speed(each) for each in read_runs([run], settings.cluster_name)]
    return [given_speed(tokens_per_s, settings)] if tokens_per_s else list(published_speeds(settings))


def given_speed(tokens_per_s: float, settings: Settings) -> Speed:
    """Return the speed that the user typed, for all nodes of the flags."""
    return Speed(what="as given", per_s=tokens_per_s, nodes=settings.nodes)


def measured_speed(run: Run) -> Speed:
    """Return the speed of a run on the nodes of its last start. Raises UsageError if it measured none."""
    if not (run.summary.tokens_per_s and run.starts):
        raise UsageError(f"price: {run.name} has no tokens/s.\n  type:    --tokens-per-s N")
    return Speed(what=run.name, per_s=run.summary.tokens_per_s, nodes=run.starts[-1].node_count)


def published_speeds(settings: Settings) -> Iterator[Speed]:
    """Yield the speeds that others published for this family, of every workload; none was measured here."""
    if settings.compute_type != settings.family_facts.main_size:
        return
    for file in sorted(TRAINING.glob("*/figures.json")):
        for each in json.loads(file.read_text(encoding="utf-8")):
            figure = Figure.model_validate(each)
            if figure.family == settings.family and figure.metric == "tokens_per_s" and figure.nodes:
                yield Speed(
                    what=f"{file.parent.name}: {figure.what} ({figure.source})",
                    per_s=figure.value,
                    nodes=figure.nodes,
                    unit=figure.unit.split("/")[0],
                    is_measured=False,
                )


def training_cost(speed: Speed, quote: Quote, dataset_tokens: float | None) -> TrainingCost | None:
    """Return the cost on this cluster with the number of nodes of the speed; None without a node's price."""
    if quote.node_usd_per_hour is None:
        return None
    by_hour = quote.standing_usd_per_hour + speed.nodes * quote.node_usd_per_hour
    hours = dataset_tokens / speed.per_s / _HOUR_S if dataset_tokens else None
    return TrainingCost(
        speed=speed,
        usd_per_hour=by_hour,
        usd_per_million=by_hour / _HOUR_S / speed.per_s * _MILLION,
        usd_per_epoch=None if hours is None else hours * by_hour,
        hours_per_epoch=hours,
    )
