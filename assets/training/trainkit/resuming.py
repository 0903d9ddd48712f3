"""Settings of a start compared with the settings of the checkpoint from which it continues."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any, NoReturn, TypeVar

from trainkit.run import checkpoints, outcome
from trainkit.run.run import Run, die
from trainkit.run.settings import TrainSettings

Settings = TypeVar("Settings", bound=TrainSettings)


def resumed_settings(run: Run, settings: Settings, *, sequences: int) -> Settings:
    """Return the settings with this start's global batch, and print their differences from the checkpoint's.

    Dies if the global batch changes and the user has not given it: with the same learning rate, the run would
    train differently from there on. Every rank calls it; the first one prints.

    Args:
        sequences: number of sequences of a step over all ranks.
    """
    if settings.global_batch not in {0, sequences}:
        _refuse(
            run,
            f"GLOBAL_BATCH is {settings.global_batch}, and a step of this job has {sequences} sequences: "
            "give that, or other nodes or settings of a rank's batch.",
        )
    now = dataclasses.replace(settings, global_batch=sequences)
    if not (found := checkpoints.resume_from(run)):
        return now
    before, step = checkpoints.noted(found).get("settings", {}), checkpoints.step_of(found)
    was = before.get("global_batch", sequences)
    if was != sequences and not settings.global_batch and step < settings.max_steps:
        _refuse(
            run,
            f"{found} was trained with {was} sequences a step, and this job has {sequences}: give as many "
            f"nodes as before, settings of a rank's batch that make {was}, or GLOBAL_BATCH={sequences} to "
            "continue with that.",
        )
    if run.is_first:
        for name, value in dataclasses.asdict(now).items():
            if name in before and before[name] != value:
                print(
                    f"{name.upper()} {_word(before[name])} -> {_word(value)} from step {step + 1:,}",
                    flush=True,
                )
    return now


def _refuse(run: Run, sentence: str) -> NoReturn:
    """Die, and keep job.slurm from starting the run again with the same settings."""
    outcome.refused(run, sentence)
    die(sentence)


def _word(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value) or "none"


@contextlib.contextmanager
def own_options(*optimizers: Any) -> Iterator[None]:
    """Keep the options of optimizers of torch, such as the weight decay, over a load of their state.

    The state has the options of the start that saved it.
    """
    own = [[_without_parameters(group) for group in each.param_groups] for each in optimizers]
    yield
    for optimizer, groups in zip(optimizers, own, strict=True):
        for group, options in zip(optimizer.param_groups, groups, strict=True):
            group.update(options)


def _without_parameters(group: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in group.items() if name != "params"}
