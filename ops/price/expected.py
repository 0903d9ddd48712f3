"""Estimates the speed of a job that has not run, from the model's size and a published utilisation."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from ops.jobs.lookup import parse_facts
from ops.jobs.settings import ask_workload, workloads_with
from ops.price.training import Speed
from ops.report.record import Figure
from ops.usage import UsageError
from training_cluster.cluster.job_environment import render_job_environments
from training_cluster.flags.settings import Settings
from training_cluster.paths import TRAINING
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.problems import did_you_mean
from training_cluster.sizing import Saves


class _Job(BaseModel):
    """Answer of a workload's expect_job for a job."""

    model: str
    reasons: tuple[str, ...]
    tokens: int
    flops_per_token: float
    saves: Saves | None = None


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Expected speed, duration and settings of a job that fits the nodes."""

    reasons: tuple[str, ...]
    """A sentence for each setting that the trainer would choose."""
    tokens: int
    """Tokens of the whole run."""
    speed: Speed
    saves: Saves | None
    """Checkpoints of the run; None if the workload does not return them."""


def expect(workload: str, job: Mapping[str, str], settings: Settings) -> Expected:
    """Estimate the speed of a job on the nodes of the flags.

    The speed is MFU x peak of all GPUs / operations of a token, with the lowest MFU that was published for
    the workload, on the same family if there is one.

    Args:
        job: environment variables of the job.
        settings: flags of the cluster; the job takes all nodes of the first queue.

    Raises:
        UsageError: the trainer would refuse the job, or nothing is known about its speed.
    """
    environments = render_job_environments(config_before_deploy(settings), settings)
    facts = parse_facts(environments[settings.first_queue.name])
    known = workloads_with("expect_job")
    if workload not in known:
        raise UsageError(
            f'price: nothing is known about the speed of "{workload}".{did_you_mean(workload, known)}\n'
            f"  allowed: {', '.join(known)}\n"
            "  type:    trainctl price --tokens-per-s N, with the speed of your own run"
        )
    said = ask_workload("expect_job", workload, job, nodes=settings.nodes, facts=facts)
    try:
        found = _Job.model_validate_json(said)
    except ValidationError as error:
        raise UsageError(f"price: {workload} gave no estimate: {error.errors()[0]['msg']}") from None
    peak = settings.family_facts.accelerator.peak_bf16_tflops
    figures = [
        figure
        for each in json.loads((TRAINING / workload / "figures.json").read_text(encoding="utf-8"))
        if (figure := Figure.model_validate(each)).metric == "mfu"
    ]
    if not peak or not figures:
        raise UsageError(
            f"price: the peak of {settings.compute_type} or the utilisation of {workload} is not known.\n"
            "  type:    --tokens-per-s N, with the speed of your own run"
        )
    figure = min(figures, key=lambda each: (each.family != settings.family, each.value))
    gpus = settings.nodes * settings.size.accelerators
    speed = Speed(
        what=f"{workload}, {found.model}: at {figure.value:.1%} of the peak, as "
        f"{figure.what} on {figure.nodes} node(s) of {figure.family} ({figure.source})",
        per_s=figure.value * peak * 1e12 * gpus / found.flops_per_token,
        nodes=settings.nodes,
        is_measured=False,
    )
    return Expected(reasons=found.reasons, tokens=found.tokens, speed=speed, saves=found.saves)
