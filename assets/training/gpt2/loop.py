"""One rank's training: from the newest checkpoint to the last step, or to the step when SIGTERM arrives."""

from __future__ import annotations

import contextlib
import logging
import math
import time
import warnings
from functools import partial
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator, DistributedDataParallelKwargs, InitProcessGroupKwargs
from accelerate.utils import set_seed
from ahead import Ahead
from behind import Behind, Mark, Step
from model import learning_rate, make_model, make_optimizer
from rank import Rank
from saving import Saving, resume
from settings import Prepared, Settings, Shape, highest_learning_rate
from trainkit import network
from trainkit.data.shards import Manifest
from trainkit.local_checkpoints import LocalCheckpoints
from trainkit.run import outcome, process_group, stacks
from trainkit.run.finite import check_finite
from trainkit.run.mfu import flops_per_token
from trainkit.run.run import Run
from trainkit.run.steps import Steps
from trainkit.run.stopping import Saves, Stop
from trainkit.run.world import check_world
from trainkit.sentinel import Sentinel
from trainkit.validation import batches_of_rank

GRADIENT_CLIP = 1.0
# fp32 weights and AdamW's two moments.
CHECKPOINT_BYTES_A_PARAMETER = 12


def train(run: Run, settings: Settings, shape: Shape, prepared: Prepared, manifest: Manifest) -> None:
    """Train; every rank calls it."""
    # Exchanging gradients in place saves a copy of each. GPT-2 has no buffer that changes.
    exchange = DistributedDataParallelKwargs(gradient_as_bucket_view=True, broadcast_buffers=False)
    # Accelerate passes the option by its former name, which torch still accepts.
    warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
    stacks.register(run)
    if settings.device == "cuda":
        network.record(run)
    accelerator = Accelerator(
        cpu=settings.device == "cpu",
        mixed_precision=settings.mixed_precision,
        kwargs_handlers=[exchange, InitProcessGroupKwargs(timeout=process_group.START)],
    )
    # The warning that GPT-2's first and last matrix are shared is not needed.
    logging.getLogger("accelerate.utils.other").setLevel(logging.ERROR)
    check_world(accelerator.device)
    rank = Rank(
        run=run,
        settings=settings,
        shape=shape,
        prepared=prepared,
        manifest=manifest,
        accelerator=accelerator,
    )
    set_seed(settings.seed)
    model = make_model(settings, shape, prepared.weights)
    parameters = model.num_parameters()
    size = parameters * CHECKPOINT_BYTES_A_PARAMETER
    saves = Saves(run, settings, checkpoint_bytes=size, agree=process_group.agree)
    run.say(
        f"GPT-2, {parameters / 1e6:.2f} M parameters from {prepared.init_from}, {run.world_size} ranks on "
        f"{accelerator.device.type}, {torch.get_num_threads()} threads a rank, "
        f"precision {settings.mixed_precision}; {manifest.tokens('train'):,} tokens in {prepared.shards}"
    )
    flops = flops_per_token(
        parameters - model.transformer.wpe.weight.numel(), shape.layers, shape.width, shape.context
    )
    optimizer = make_optimizer(model, settings)
    if settings.compile == "yes":
        # Compile in place, so that checkpoints have the same names, and before the wrapper, as in nanoGPT.
        model.compile()
    model, optimizer = accelerator.prepare(model, optimizer)
    with rank.ahead() as ahead:
        stopped_at = train_steps(rank, model, optimizer, saves, ahead=ahead, flops=flops)
    outcome.ended(run, stopped_at)
    # The gradients' exchange is deleted before the process group that it uses; in the other order gloo waits
    # forever in its destructor (torch 2.13).
    del model, optimizer
    accelerator.free_memory()
    process_group.leave()


def train_steps(
    rank: Rank, model: Any, optimizer: Any, saves: Saves, *, ahead: Ahead, flops: float
) -> int | None:
    """Do the remaining steps; return the last one if a rank was asked to stop, or None."""
    run, settings, accelerator = rank.run, rank.settings, rank.accelerator
    stop = Stop()
    tokens_a_step = run.world_size * settings.gradient_accumulation * settings.batch_size * rank.shape.context
    highest = highest_learning_rate(settings, rank.prepared.weights)
    local = LocalCheckpoints(run, every=settings.checkpoint_local_every, is_sharded=False)
    first, tokens = resume(rank, model, optimizer, local)
    saving = Saving(rank, model, optimizer, local)
    rows = Steps(run=run, settings=settings, after=first, device=accelerator.device, flops_per_token=flops)
    record = partial(record_step, rank, rows, saving=saving, tokens_a_step=tokens_a_step)
    behind = Behind(record, ranks=run.world_size)
    sentinel = Sentinel(run, every=settings.sentinel_every, model=model, loss_of=rank.loss_of_first_batch)
    for number in range(first + 1, settings.max_steps + 1):
        begin, started = behind.begin(accelerator.device), time.perf_counter()
        rate = learning_rate(number, settings, highest)
        for group in optimizer.param_groups:
            group["lr"] = rate
        micro_batches = ahead.batches(tokens // rank.shape.context)
        data_s = time.perf_counter() - started
        # Of dropout: a resume draws what an uninterrupted run does, and the ranks draw different numbers.
        torch.manual_seed(int(np.random.default_rng([settings.seed, number, run.rank]).integers(2**31)))
        loss, norm = update(accelerator, model, optimizer, micro_batches)
        sums = rank.sums(loss, stop.asked, norm, behind.last_s)
        tokens += tokens_a_step
        step = Step(
            number=number,
            learning_rate=rate,
            tokens=tokens,
            data_s=data_s,
            begin=begin,
            end=Mark(accelerator.device),
            sums=sums,
        )
        is_due, validates = saves.due(number), settings.validates_after(number)
        compares, is_local = sentinel.due(number), local.due(number)
        stopping = behind.add(step, at_once=is_due or validates or compares or is_local)
        if compares and not stopping:
            sentinel.compare(number)
        if is_due or stopping:
            started = time.perf_counter()
            saving.save(step=number, tokens=tokens)
            if stopping:
                saving.finish()
            rows.saved(time.perf_counter() - started)
        if stopping:
            return number
        if is_local:
            started = time.perf_counter()
            saving.save_locally(step=number, tokens=tokens)
            rows.saved(time.perf_counter() - started, "local_save_s")
        if validates:
            validate(rank, model, rows, step=number)
    validate(rank, model, rows, step=max(first, settings.max_steps))
    saving.finish()
    local.close()
    return None


def record_step(
    rank: Rank, rows: Steps, step: Step, loss: float, norm: float, *, saving: Saving, tokens_a_step: int
) -> None:
    """Write a step, and die unless its numbers are finite; the device may compute the next step meanwhile."""
    if step.number == rows.after + 1:
        process_group.shorten()
    rows.add(
        step=step.number,
        loss=loss,
        grad_norm=norm,
        learning_rate=step.learning_rate,
        tokens=step.tokens,
        tokens_per_s=tokens_a_step / step.seconds,
        step_s=step.seconds,
        data_s=step.data_s,
    )
    # To read the scale waits for the device. It decides only about gradients that overflowed.
    scaler = None if math.isfinite(norm) else rank.accelerator.scaler
    scale = scaler.get_scale() if scaler else None
    numbers: dict[str, Any] = {"loss": loss, "gradient_norm": norm, "loss_scale": scale}
    check_finite(rank.run, step=step.number, finish_saving=saving.finish, **numbers)


def update(
    accelerator: Accelerator, model: Any, optimizer: Any, micro_batches: list[torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Make one update; return this rank's loss, and the norm of all ranks' gradients.

    Gradients are exchanged in the last micro-step only. Nothing here waits for the device, which would be
    idle until it is given the next micro-step.
    """
    model.train()
    total = torch.zeros((), dtype=torch.float64, device=accelerator.device)
    for i, ids in enumerate(micro_batches, start=1):
        last = i == len(micro_batches)
        with contextlib.nullcontext() if last else accelerator.no_sync(model):
            loss = model(ids) / len(micro_batches)
            accelerator.backward(loss)
        total += loss.detach()
    norm = accelerator.clip_grad_norm_(model.parameters(), GRADIENT_CLIP)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return total, norm


def validate(rank: Rank, model: Any, rows: Steps, *, step: int) -> None:
    """Record the mean loss over eval_sequences, which are always the same."""
    wanted, run = rank.settings.eval_sequences, rank.run
    if not wanted:
        return
    started = time.perf_counter()
    with process_group.patient(run, "validating"):
        tokens, place = rank.tokens("val"), {"rank": run.rank, "ranks": run.world_size}
        sequences, size = rank.order("val").sequences, rank.settings.batch_size
        total, count = torch.zeros((), dtype=torch.float64, device=rank.accelerator.device), 0
        model.eval()
        with torch.no_grad():
            for own in batches_of_rank(sequences, wanted, **place, size=size):
                total += model(rank.rows(tokens, own)) * len(own)
                count += len(own)
        sums = rank.sums(total, count)
        Mark(rank.accelerator.device).wait()
        loss = float(sums[0] / sums[1])
    rows.add_validation(step=step, loss=loss, seconds=time.perf_counter() - started)
