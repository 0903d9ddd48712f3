"""One rank's training: from the newest checkpoint to the last step, or to the step when SIGTERM arrives."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import torch
from batches import Vocabulary, open_samples
from megatron.core import parallel_state
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
from model import make_model, make_optimizer, make_parallel, parameters_of
from rank import Rank
from saving import resume, save
from settings import Settings, Sizes
from trainkit.data.indexed import Indexed
from trainkit.run import checkpoints, outcome, process_group
from trainkit.run.finite import check_finite
from trainkit.run.mfu import flops_per_token
from trainkit.run.run import Run
from trainkit.run.steps import Steps
from trainkit.run.stopping import Saves, Stop
from trainkit.run.world import check_world
from weights import load_weights

# Weights and AdamW's two moments in fp32, and the weights once more in bf16.
CHECKPOINT_BYTES_A_PARAMETER = 14


def train(run: Run, settings: Settings, sizes: Sizes, data: Indexed, weights: Path | None) -> None:
    """Train; every rank calls it."""
    device = start_world(run, settings)
    check_world(device)
    parallel_state.initialize_model_parallel(sizes.tensor, sizes.pipeline)
    model_parallel_cuda_manual_seed(settings.seed)
    core = make_model(settings, device)
    if weights:
        load_weights(core, weights, settings=settings)
    model = make_parallel(core, settings)
    optimizer, schedule = make_optimizer(model, settings)
    rank = Rank(
        run=run,
        settings=settings,
        sizes=sizes,
        device=device,
        model=model,
        optimizer=optimizer,
        schedule=schedule,
        samples=open_samples(settings, data.prefixes, Vocabulary(**data.noted)),
    )
    parameters = parameters_of(settings)
    size = parameters * CHECKPOINT_BYTES_A_PARAMETER
    saves = Saves(run, settings, checkpoint_bytes=size, agree=process_group.agree)
    run.say(
        f"GPT-2, {parameters / 1e6:.1f} M parameters from {weights or 'scratch'}, {run.world_size} ranks on "
        f"{device.type}: {sizes.data} data x {sizes.tensor} tensor x {sizes.pipeline} pipeline parallel, "
        f"{sizes.micro_batches} micro-batches of {settings.micro_batch_size}, precision "
        f"{settings.mixed_precision}, {settings.transformer_impl}; "
        f"{len(rank.samples['train']):,} samples an epoch"
    )
    stopped_at = train_steps(rank, core, saves, data.sum)
    outcome.ended(run, stopped_at)
    process_group.leave()


def start_world(run: Run, settings: Settings) -> torch.device:
    """Join the other ranks; return this rank's device."""
    if settings.device == "cpu":
        process_group.join(run, "gloo")
        return torch.device("cpu")
    device = torch.device("cuda", run.local_rank)
    torch.cuda.set_device(device)
    process_group.join(run, "nccl", device_id=device)
    return device


def train_steps(rank: Rank, core: Any, saves: Saves, data: str) -> int | None:
    """Do the remaining steps; return the step in which a rank was asked to stop, or None."""
    run, settings, sizes = rank.run, rank.settings, rank.sizes
    stop = Stop()
    first = resume(rank, core, data)
    rank.schedule.step(increment=first)
    tokens_a_step = settings.global_batch_size * settings.gpt2_context
    flops = flops_per_token(
        parameters_of(settings), settings.gpt2_layers, settings.gpt2_width, settings.gpt2_context
    )
    rows = Steps(run=run, settings=settings, after=first, device=rank.device, flops_per_token=flops)
    rank.model.train()
    for step in range(first + 1, settings.max_steps + 1):
        started = time.perf_counter()
        rank.seed(step)
        rank.schedule.step(increment=1)
        at = (step - 1) * settings.global_batch_size
        batches = rank.batches(first=at, count=sizes.micro_batches)
        data_s = time.perf_counter() - started
        loss, norm, stopping = update(rank, batches, stop)
        step_s = time.perf_counter() - started
        if step == first + 1:
            process_group.shorten()
        rows.add(
            step=step,
            loss=loss,
            grad_norm=norm,
            learning_rate=rank.optimizer.param_groups[0]["lr"],
            tokens=step * tokens_a_step,
            tokens_per_s=tokens_a_step / step_s,
            step_s=step_s,
            data_s=data_s,
        )
        check_finite(run, step=step, loss=loss, gradient_norm=norm)
        if saves.due(step) or stopping:
            started = time.perf_counter()
            with process_group.patient(run, "saving"), checkpoints.saving(run):
                save(rank, core, data, step=step)
            rows.saved(time.perf_counter() - started)
        if stopping:
            return step
        if settings.validates_after(step):
            validate(rank, rows, step=step)
    validate(rank, rows, step=max(first, settings.max_steps))
    return None


def update(rank: Rank, batches: list[dict[str, torch.Tensor]], stop: Stop) -> tuple[float, float, bool]:
    """Make one update; return the mean loss, the norm of the gradients, and whether a rank was asked to stop.

    All three are equal on all ranks, which then decide the same.
    """
    rank.model.zero_grad_buffer()
    rank.optimizer.zero_grad()
    own, count = rank.forward(batches, backward=True)
    _, norm, _ = rank.optimizer.step()
    loss, losses, asked = rank.sum(own, count, stop.asked)
    return loss / losses, math.nan if norm is None else float(norm), asked > 0


def validate(rank: Rank, rows: Steps, *, step: int) -> None:
    """Record the mean loss over eval_sequences, always the same samples."""
    if not rank.settings.eval_sequences:
        return
    started, total, count = time.perf_counter(), 0.0, 0
    with process_group.patient(rank.run, "validating"), torch.no_grad():
        rank.model.eval()
        for batch, samples in rank.validation_batches():
            loss, _ = rank.forward([batch], backward=False)
            total, count = total + loss * samples, count + samples
        # Each pipeline and tensor parallel rank counts the samples, and one of them has the loss.
        loss, counted = rank.sum(total, count)
        rank.model.train()
    loss *= rank.sizes.tensor * rank.sizes.pipeline
    rows.add_validation(step=step, loss=loss / counted, seconds=time.perf_counter() - started)
