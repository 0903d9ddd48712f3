"""Calculates the cost of a million tokens and of an epoch from the speed of a run."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ops.price.quote import Quote
from ops.report.record import Figure
from ops.usage import UsageError
from training_cluster.flags.settings import Settings
from training_cluster.paths import TRAINING

_MILLION, _HOUR_S = 1_000_000, 3600
_REPORT = "python -m trainkit.run.report RUN_DIR --json"


class _Report(BaseModel):
    """Fields of a run's report that are needed here."""

    model_config = ConfigDict(extra="ignore")

    tokens_per_s: float = Field(gt=0)
    world_size: int = Field(gt=0)


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


def known_speeds(settings: Settings, *, run: Path | None, tokens_per_s: float | None) -> list[Speed]:
    """Return the speed of a run or the given one; without both, the published ones. Errors as in read_run."""
    if run:
        return [read_run(run, settings)]
    return [given_speed(tokens_per_s, settings)] if tokens_per_s else list(published_speeds(settings))


def given_speed(tokens_per_s: float, settings: Settings) -> Speed:
    """Return the speed that the user typed, for all nodes of the flags."""
    return Speed(what="as given", per_s=tokens_per_s, nodes=settings.nodes)


def read_run(file: Path, settings: Settings) -> Speed:
    """Return the speed of a run by its report, and its number of nodes by its world size.

    Raises:
        UsageError: the file cannot be read, or is not such a report.
    """
    try:
        report = _Report.model_validate_json(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"--run {file}: {error.strerror or error}") from None
    except (ValidationError, UnicodeDecodeError) as error:
        why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else "not text"
        where = ".".join(map(str, error.errors()[0]["loc"])) if isinstance(error, ValidationError) else ""
        raise UsageError(
            f"--run {file}: not the report of a run: {f'{where}: ' if where else ''}{why}\n"
            f"  type:   {_REPORT} > {file}"
        ) from None
    ranks = ranks_per_node(settings)
    nodes, rest = divmod(report.world_size, ranks)
    if rest:
        raise UsageError(
            f"--run {file}: world size {report.world_size} is not a whole number of {settings.compute_type} "
            f"nodes with {ranks} ranks each\n  type:   -c family=... of the run"
        )
    return Speed(what=f"{file}", per_s=report.tokens_per_s, nodes=nodes)


def ranks_per_node(settings: Settings) -> int:
    """Return the GPUs or NeuronCores of a node, 1 for a CPU node (as cluster.job_environment does)."""
    return settings.size.accelerators * settings.family_facts.accelerator.cores or 1


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
