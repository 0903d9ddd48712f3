"""One rank's training: from the newest checkpoint to the last step, or to the step in which SIGTERM came."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import torch
import torch.distributed as dist
from batches import TRAINING, VALIDATION, rows_of, starts_of
from data import Data
from model import Llama, loss_of
from parallel import Update, make_mesh, make_model, make_optimizer
from progress import Progress, read_progress
from saving import Saver
from settings import Settings, learning_rate
from sizes import Shape
from trainkit.data.shards import Tokens
from trainkit.run import checkpoints, outcome, process_group
from trainkit.run.finite import check_finite
from trainkit.run.memory import peak_bytes
from trainkit.run.metrics import FILE as METRICS
from trainkit.run.metrics import Metrics, summary_of
from trainkit.run.mfu import flops_per_token, mfu
from trainkit.run.run import Run, die
from trainkit.run.stopping import Stop
from trainkit.run.world import check_world

GRADIENT_CLIP = 1.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rank:
    """Run, settings, sizes, data and device of one rank."""

    run: Run
    settings: Settings
    shape: Shape
    data: Data
    device: torch.device

    def say(self, text: str) -> None:
        """Print a line, on the first rank only."""
        if self.run.is_first:
            print(text)

    def mean(self, *values: float) -> list[float]:
        """Return the mean over ranks of each value, in one exchange."""
        own = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(own)
        return [float(value) / self.run.world_size for value in own.tolist()]

    def tokens(self, split: str) -> Tokens:
        """Open the tokens of one split."""
        return Tokens(self.data.folder, self.data.manifest, split)

    def batches(self, tokens: Tokens, *, what: int, step: int, micro_steps: int) -> list[torch.Tensor]:
        """Read this rank's (batch_size, context + 1) token ids of each micro-step."""
        length = self.settings.llama_context + 1
        starts = starts_of(
            [what, self.settings.seed, step],
            tokens=len(tokens),
            length=length,
            ranks=self.run.world_size,
            micro_steps=micro_steps,
            batch_size=self.settings.batch_size,
        )
        own = (rows_of(tokens, each, length) for each in starts[:, self.run.rank])
        return [torch.from_numpy(rows).to(self.device) for rows in own]


def train(run: Run, settings: Settings, shape: Shape, data: Data, checkpoint: Path | None) -> None:
    """Train, from `checkpoint` on if there is one; every rank calls it."""
    device = open_device(run, settings)
    # gloo beside NCCL: checkpoints are written from host memory.
    process_group.join(run, "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo")
    check_world(device)
    rank = Rank(run=run, settings=settings, shape=shape, data=data, device=device)
    mesh = make_mesh(run, settings)
    model = make_model(shape, settings, mesh, device)
    optimizer = make_optimizer(model, settings)
    rank.say(
        f"Llama {settings.llama_size}, {shape.parameters / 1e6:,.2f} M parameters over "
        f"{' x '.join(map(str, mesh.shape))} ranks on {device.type}, {torch.get_num_threads()} threads a "
        f"rank; precision {settings.mixed_precision}, activation checkpointing "
        f"{settings.activation_checkpointing}, compile {settings.compile}; "
        f"{data.manifest.tokens('train'):,} tokens in {data.folder}"
    )
    saver = Saver(run, model, optimizer, keep=settings.keep_checkpoints, device=device)
    try:
        stopped_at = train_steps(rank, Update(model, optimizer, settings), saver, checkpoint)
    except torch.OutOfMemoryError as error:
        die(
            f"the GPU's memory is too small ({str(error).partition('. ')[0]}): lower BATCH_SIZE or "
            "LLAMA_CONTEXT, give ACTIVATION_CHECKPOINTING=full and SHARD=all, or take more nodes."
        )
    with process_group.patient(run, "saving"):
        saver.close()
    if stopped_at is None:
        with process_group.patient(run, "validating"):
            finish(rank, model)
    else:
        outcome.stopped(run, stopped_at)
        rank.say(f"stopped on request, saved at step {stopped_at}: submit with the same RUN_NAME to go on")
    process_group.leave()


def open_device(run: Run, settings: Settings) -> torch.device:
    """Return the device of this rank."""
    if settings.device == "cpu":
        return torch.device("cpu")
    torch.cuda.set_device(run.local_rank)
    # fp32 products by the tensor cores (TF32) where there are such; bf16 is not concerned.
    torch.set_float32_matmul_precision("high")
    return torch.device("cuda", run.local_rank)


def train_steps(rank: Rank, update: Update, saver: Saver, checkpoint: Path | None) -> int | None:
    """Do the remaining steps; return the step in which a rank was asked to stop, or None."""
    run, settings, shape = rank.run, rank.settings, rank.shape
    stop = Stop()
    micro_steps = settings.gradient_accumulation
    tokens_a_step = run.world_size * micro_steps * settings.batch_size * settings.llama_context
    flops = flops_per_token(shape.computing_parameters, shape.layers, shape.width, settings.llama_context)
    first, tokens_seen = resume(rank, saver, checkpoint)
    metrics = Metrics(run.run_dir / METRICS, after_step=first) if run.is_first else None
    data = rank.tokens("train")
    for step in range(first + 1, settings.max_steps + 1):
        started = time.perf_counter()
        rate = learning_rate(step, settings)
        micro_batches = rank.batches(data, what=TRAINING, step=step, micro_steps=micro_steps)
        data_s = time.perf_counter() - started
        own_loss, norm = update(micro_batches, clip=GRADIENT_CLIP, learning_rate=rate)
        # The losses, and whether any rank was asked to stop: all ranks then decide the same.
        loss, stopping = rank.mean(own_loss, stop.asked)
        step_s = time.perf_counter() - started
        if step == first + 1:
            process_group.shorten()
        tokens_seen += tokens_a_step
        if metrics:
            line = metrics.add(
                step=step,
                loss=loss,
                learning_rate=rate,
                tokens=tokens_seen,
                tokens_per_s=tokens_a_step / step_s,
                step_s=step_s,
                data_s=data_s,
                memory_bytes=peak_bytes(rank.device),
                world_size=run.world_size,
                mfu=mfu(tokens_a_step / step_s, flops, run.peak_tflops, run.world_size),
            )
            if step % settings.log_every == 0 or step in {first + 1, settings.max_steps}:
                print(line)
        check_finite(run, step=step, loss=loss, gradient_norm=norm, finish_saving=saver.wait)
        saver.check()
        if step % settings.checkpoint_every == 0 or step == settings.max_steps or stopping:
            noted = Progress(
                step=step,
                tokens=tokens_seen,
                world_size=run.world_size,
                shape=dataclasses.asdict(shape),
                data=rank.data.sum(),
            )
            with process_group.patient(run, "saving"):
                saver.save(noted)
        if stopping:
            return step
    return None


def finish(rank: Rank, model: Llama) -> None:
    """Print the mean loss over eval_batches a rank, always the same ones, and the end of the training."""
    tokens = rank.tokens("val")
    model.eval()
    total = 0.0
    with torch.no_grad():
        for i in range(rank.settings.eval_batches):
            (ids,) = rank.batches(tokens, what=VALIDATION, step=i, micro_steps=1)
            total += loss_of(model(ids[:, :-1]), ids[:, 1:]).item()
    (loss,) = rank.mean(total / max(1, rank.settings.eval_batches))
    outcome.finished(rank.run)
    if rank.run.is_first:
        summary = summary_of(rank.run.run_dir / METRICS)
        print(f"finished: {summary}, validation loss {loss:.4f}")


def resume(rank: Rank, saver: Saver, checkpoint: Path | None) -> tuple[int, int]:
    """Load a checkpoint; return its step and its number of tokens, or (0, 0) without one."""
    if rank.run.is_first:
        checkpoints.clear_partials(rank.run.checkpoint_dir)
    # Nobody writes before that is done.
    dist.barrier()
    if checkpoint is None:
        return 0, 0
    noted = read_progress(checkpoint)
    same_world = noted.world_size == rank.run.world_size
    saver.load(checkpoint, same_world=same_world)
    ranks = "" if same_world else f": {noted.world_size} ranks wrote it, {rank.run.world_size} read it"
    rank.say(f"resuming from {checkpoint}{ranks}")
    return noted.step, noted.tokens
