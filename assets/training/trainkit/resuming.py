"""Settings of a start compared with the settings of the checkpoint from which it continues."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from trainkit import label
from trainkit.run import checkpoints, outcome
from trainkit.run.run import Run, die
from trainkit.run.settings import AccumulatingSettings, TrainSettings, is_given, ranks_of_node

Settings = TypeVar("Settings", bound=TrainSettings)
Accumulating = TypeVar("Accumulating", bound=AccumulatingSettings)


KEPT = ("eval_every", "warmup_steps")
"""Settings whose defaults have changed, or depend on others: a run keeps those that it began with."""


def accumulated(
    run: Run, settings: Accumulating, *, texts: Mapping[str, float] | None = None
) -> Accumulating:
    """Return what `resumed_settings` does, with the number of micro-steps that keeps the global batch.

    The batch is GLOBAL_BATCH, else that of the checkpoint from which the run continues, so that it trains on
    other nodes as before. Without both, GRADIENT_ACCUMULATION decides.
    """
    found, micro_step = checkpoints.resume_from(run), run.world_size * settings.batch_size
    batch = settings.global_batch or (kept_batch(found, settings) if found else 0)
    if rest := batch % micro_step:
        near = max(batch - rest, micro_step)
        _refuse(run, _does_not_divide(batch, micro_step, f"GLOBAL_BATCH={near} to continue with that"))
    count = batch // micro_step or settings.gradient_accumulation
    if count != settings.gradient_accumulation:
        was = settings.gradient_accumulation
        run.say(f"GRADIENT_ACCUMULATION is {count}, not {was}: a step has {batch} sequences (GLOBAL_BATCH)")
    settings = dataclasses.replace(settings, gradient_accumulation=count)
    return resumed_settings(run, settings, sequences=micro_step * count, texts=texts)


def check_batch(settings: AccumulatingSettings, nodes: int) -> None:
    """Die if the global batch, of the settings or of the run so far, cannot be divided among the ranks.

    Args:
        nodes: number of nodes; the environment has the ranks of each, and in a job CHECKPOINT_DIR.
    """
    folder = os.environ.get("CHECKPOINT_DIR")
    found = checkpoints.newest(Path(folder)) if folder else None
    batch = settings.global_batch or (kept_batch(found, settings) if found else 0)
    check_range(batch)
    if batch % (micro_step := nodes * ranks_of_node() * settings.batch_size):
        die(_does_not_divide(batch, micro_step, "another GLOBAL_BATCH"))


def check_range(global_batch: int) -> None:
    """Die if a job on a range of nodes has no global batch, which would depend on the nodes that are free."""
    if not global_batch and os.environ.get("MIN_NODES"):
        die("a job on a range of nodes (MIN_NODES) needs GLOBAL_BATCH, the sequences of a step.")


def kept_batch(checkpoint: Path, settings: TrainSettings) -> int:
    """Return the global batch that a run keeps; 0 if its checkpoint names none, or no step is left to do."""
    if not settings.epochs and checkpoints.step_of(checkpoint) >= settings.max_steps:
        return 0
    return int(label.noted(checkpoint).get("settings", {}).get("global_batch", 0))


def _does_not_divide(batch: int, micro_step: int, instead: str) -> str:
    return (
        f"a step has {batch} sequences, and a micro-step of these ranks {micro_step}, which does not divide "
        f"them: give other nodes, another BATCH_SIZE, or {instead}."
    )


def resumed_settings(
    run: Run, settings: Settings, *, sequences: int, texts: Mapping[str, float] | None = None
) -> Settings:
    """Return the settings with this start's global batch and length, and print both, and what has changed.

    Dies if a setting changes that the run keeps (`settings.kept`), or if the global batch changes and the
    user has not given it: with the same learning rate, the run would train differently from there on. Every
    rank calls it; the first one prints.

    Args:
        sequences: number of sequences of a step over all ranks.
        texts: sequences of an epoch of each text, divided by its weight in a mixture; empty if they are not
            known, None if the trainer has its own warm-up and epochs.
    """
    if settings.global_batch not in {0, sequences}:
        _refuse(
            run,
            f"GLOBAL_BATCH is {settings.global_batch}, and a step of this job has {sequences} sequences: "
            "give that, or other nodes or settings of a rank's batch.",
        )
    now = dataclasses.replace(settings, global_batch=sequences)
    found = checkpoints.resume_from(run)
    before = label.noted(found).get("settings", {}) if found else {}
    if texts is not None:
        now = with_length(now, texts, before, step=checkpoints.step_of(found) if found else 0)
        run.say(describe_length(now, texts))
    if not found:
        return now
    step = checkpoints.step_of(found)
    for name in settings.kept:
        value = getattr(settings, name)
        # An earlier version did not record the SIZE that was chosen.
        if before.get(name, value) != value and (name, before[name]) != ("size", ""):
            _refuse(
                run,
                f"{found} was trained with {name.upper()}={_word(before[name])}, and this start has "
                f"{_word(value)}: give the same, or another RUN_NAME.",
            )
    was = before.get("global_batch", sequences)
    if was != sequences and not settings.global_batch and step < now.max_steps:
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


def with_length(
    settings: Settings, texts: Mapping[str, float], before: Mapping[str, Any], *, step: int = 0
) -> Settings:
    """Return the settings with the steps of EPOCHS, and a warm-up of at most a tenth of them, unless given.

    Dies if EPOCHS is given and there is no number of sequences, or several.

    Args:
        before: settings of the checkpoint from which the run continues, if it does.
        step: step of that checkpoint. The steps up to it had its global batch.
    """
    steps = settings.max_steps
    if settings.epochs:
        if len(texts) != 1:
            die("EPOCHS is for one text whose sequences are counted, no mixture or stream: give MAX_STEPS.")
        read = step * before.get("global_batch", settings.global_batch)
        left = settings.epochs * sum(texts.values()) - read
        steps = step + max(0, math.ceil(left / settings.global_batch))
    usual = {"warmup_steps": min(settings.warmup_steps, steps // 10)}
    kept = {**usual, **{name: before[name] for name in KEPT if name in before}}
    own = {name: value for name, value in kept.items() if not is_given(name)}
    return dataclasses.replace(settings, max_steps=steps, **own)


def describe_length(settings: TrainSettings, texts: Mapping[str, float]) -> str:
    """Return the learning rate and the length of a run in one sentence."""
    steps, batch = settings.max_steps, settings.global_batch
    epochs = [f"{steps * batch / each:,.3g} epochs of {name}" for name, each in texts.items()]
    rate = f"LEARNING_RATE={settings.learning_rate:g}, " if settings.learning_rate else ""
    warmup = f"WARMUP_STEPS={settings.warmup_steps}, "
    return f"{rate}{warmup}{steps:,} steps of {batch:,} sequences" + (
        f": {', '.join(epochs)}" if epochs else ""
    )


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
