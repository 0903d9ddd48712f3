"""One rank's training: from the newest checkpoint to the last step, or to the step when SIGTERM arrives."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from compile_cache import describe
from devices import DEVICES, CpuDevice, to_host
from masking import IGNORED, Batch, mask
from model import load_weights, loss_of, losses_of, make_model, make_optimizer, weights_of
from pairs import ROW_HEAD, Special
from safetensors.torch import load_file, save_file
from settings import Settings, learning_rate
from trainkit.data.order import Order
from trainkit.data.shards import Manifest, Tokens
from trainkit.resuming import own_options
from trainkit.run import checkpoints, outcome, process_group
from trainkit.run.finite import check_finite
from trainkit.run.mfu import flops_per_token
from trainkit.run.run import Run, die
from trainkit.run.steps import Steps
from trainkit.run.stopping import Saves, Stop
from trainkit.validation import SEED, batches_of_rank

GRADIENT_CLIP = 1.0
# fp32 weights and AdamW's two moments.
CHECKPOINT_BYTES_A_PARAMETER = 12
WEIGHTS, OPTIMIZER, PROGRESS = "model.safetensors", "optimizer.pt", "progress.json"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rank:
    """The state of this rank's training."""

    run: Run
    settings: Settings
    shards: Path
    manifest: Manifest
    device: CpuDevice

    @property
    def special(self) -> Special:
        """The special tokens of the vocabulary."""
        return Special(**self.manifest.source["special"])

    def tokens(self, split: str) -> Tokens:
        """Open the rows of one split."""
        return Tokens(self.shards, self.manifest, split)

    def order(self, split: str) -> Order:
        """Return the order in which the rows of one split are read."""
        rows = self.manifest.tokens(split) // (self.settings.bert_context + ROW_HEAD)
        return Order(sequences=rows, seed=self.settings.seed)

    def batch(self, split: str, tokens: Tokens, *, first: int, micro_step: int) -> Batch:
        """Read a batch and mask it, decided by the seed and the position `first` of the step."""
        settings, length = self.settings, self.settings.bert_context + ROW_HEAD
        size, rank, ranks = settings.batch_size, self.run.rank, self.run.world_size
        chosen = self.order(split).batch(first, size=size, rank=rank, ranks=ranks, micro_step=micro_step)
        found = tokens.windows((each * length for each in chosen), length)
        generator = np.random.default_rng([settings.seed, first, micro_step, rank])
        return mask(found, generator, special=self.special, vocab_size=self.manifest.vocab_size)

    def fixed_batch(self, tokens: Tokens, sequences: list[int]) -> Batch:
        """Read rows of the validation, masked as in every run; no label counts after the given ones.

        A graph has batches of one size.
        """
        length, size = self.settings.bert_context + ROW_HEAD, self.settings.batch_size
        rows = [
            mask(
                tokens.windows([each * length], length),
                np.random.default_rng([SEED, each]),
                special=self.special,
                vocab_size=self.manifest.vocab_size,
            )
            for each in [*sequences, *sequences[:1] * (size - len(sequences))]
        ]
        batch = Batch(**{name: np.concatenate([vars(row)[name] for row in rows]) for name in vars(rows[0])})
        batch.labels[len(sequences) :] = IGNORED
        batch.next_sentence_label[len(sequences) :] = IGNORED
        return batch

    def sequences_a_step(self) -> int:
        """Return the number of rows that all ranks read in a step."""
        settings = self.settings
        return self.run.world_size * settings.gradient_accumulation * settings.batch_size


def train(run: Run, settings: Settings, shards: Path, manifest: Manifest) -> None:
    """Train, or only show the compiler the graphs; every rank calls it."""
    device = DEVICES[settings.device](run, settings.mixed_precision)
    device.check()
    rank = Rank(run=run, settings=settings, shards=shards, manifest=manifest, device=device)
    torch.manual_seed(settings.seed)
    model = make_model(settings, rank.special)
    parameters = model.num_parameters()
    run.say(
        f"BERT, {parameters / 1e6:.2f} M parameters, {run.world_size} ranks on {device.kind}, "
        f"precision {settings.mixed_precision}; sequences of {settings.bert_context} from {shards}"
    )
    if device.kind == "neuron":
        run.say(describe(os.environ["NEURON_COMPILE_CACHE_URL"]))
    first, taken, optimizer_state = (0, 0, None) if settings.precompile else resume(rank, model)
    device.place(model)
    optimizer = make_optimizer(model, settings)
    if optimizer_state is not None:
        with own_options(optimizer):
            optimizer.load_state_dict(optimizer_state)
    # Their initialisation is then not in the first step's graph, so a resumed run has the same graph.
    device.sync()
    model.train()
    if settings.precompile:
        precompile(rank, model, optimizer)
    else:
        size = parameters * CHECKPOINT_BYTES_A_PARAMETER
        saves = Saves(run, settings, checkpoint_bytes=size, agree=device.agree)
        stopped_at = train_steps(rank, model, optimizer, saves, first=first, taken=taken)
        outcome.ended(run, stopped_at)
    device.leave()


def precompile(rank: Rank, model: Any, optimizer: torch.optim.Optimizer) -> None:
    """Do a few steps and a validation as in a run, without results."""
    data = rank.tokens("train")
    for step in range(1, rank.settings.precompile_steps + 1):
        update(rank, model, optimizer, data, step=step, taken=step * rank.sequences_a_step())
    validation_losses(rank, model, rank.run.world_size)
    rank.run.say(f"precompile: {rank.settings.precompile_steps} steps, nothing trained")


def train_steps(
    rank: Rank, model: Any, optimizer: torch.optim.Optimizer, saves: Saves, *, first: int, taken: int
) -> int | None:
    """Do all steps after `first`; return the step in which a rank was asked to stop, or None.

    Args:
        taken: the number of rows that all ranks have read until then.
    """
    run, settings, device = rank.run, rank.settings, rank.device
    stop = Stop()
    sequences = rank.sequences_a_step()
    tokens_a_step = sequences * settings.bert_context
    positions = model.bert.embeddings.position_embeddings.weight.numel()
    flops = flops_per_token(
        model.num_parameters() - positions, settings.bert_layers, settings.bert_width, settings.bert_context
    )
    rows = Steps(run=run, settings=settings, after=first, device=device.torch_device, flops_per_token=flops)
    data = rank.tokens("train")
    for step in range(first + 1, settings.max_steps + 1):
        started = time.perf_counter()
        with device.compiling(step - first):
            own_loss, norm, data_s = update(rank, model, optimizer, data, step=step, taken=taken)
            # The losses, and whether any rank was asked to stop: all ranks then decide the same.
            loss, stopping = device.mean(own_loss, stop.asked)
        step_s = time.perf_counter() - started
        taken += sequences
        if step == first + 1 and device.kind == "cpu":  # XLA also compiles later
            process_group.shorten()
        rows.add(
            step=step,
            loss=loss,
            grad_norm=norm,
            learning_rate=learning_rate(step, settings),
            tokens=taken * settings.bert_context,
            tokens_per_s=tokens_a_step / step_s,
            step_s=step_s,
            data_s=data_s,
            seq_per_s=sequences / step_s,
        )
        check_finite(run, step=step, loss=loss, gradient_norm=norm)
        if saves.due(step) or stopping:
            started = time.perf_counter()
            with device.patient("saving"), checkpoints.saving(run):
                save(rank, model, optimizer, step=step, taken=taken)
            rows.saved(time.perf_counter() - started)
        if stopping:
            return step
        if settings.validates_after(step):
            validate(rank, model, rows, step=step)
    validate(rank, model, rows, step=max(first, settings.max_steps))
    return None


def update(
    rank: Rank, model: Any, optimizer: torch.optim.Optimizer, data: Tokens, *, step: int, taken: int
) -> tuple[float, float, float]:
    """Make one update; return this rank's loss, the norm of all ranks' gradients, and the batches' seconds.

    The micro-steps are one graph, which runs many times; the update is another graph.
    """
    settings, device = rank.settings, rank.device
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(step, settings)
    device.seed(int(np.random.default_rng([settings.seed, step, rank.run.rank]).integers(2**31)))
    total, data_s = torch.zeros((), device=device.torch_device), 0.0
    for micro_step in range(settings.gradient_accumulation):
        started = time.perf_counter()
        batch = rank.batch("train", data, first=taken, micro_step=micro_step)
        data_s += time.perf_counter() - started
        loss = loss_of(model, batch, device) / settings.gradient_accumulation
        loss.backward()
        total += loss.detach()
        device.sync()
    device.average_gradients(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), GRADIENT_CLIP, foreach=False)
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    device.sync()
    return total.item(), norm.item(), data_s


def validate(rank: Rank, model: Any, rows: Steps, *, step: int) -> None:
    """Record the mean loss over eval_sequences."""
    if not rank.settings.eval_sequences:
        return
    started = time.perf_counter()
    with rank.device.patient("validating"):
        sums = rank.device.mean(*validation_losses(rank, model, rank.settings.eval_sequences))
    loss = sums[0] / sums[1] + sums[2] / sums[3]
    rows.add_validation(step=step, loss=loss, seconds=time.perf_counter() - started)


def validation_losses(rank: Rank, model: Any, wanted: int) -> npt.NDArray[np.float64]:
    """Return the sum and number of this rank's hidden tokens' losses, and those of the next sentences."""
    run, tokens, totals = rank.run, rank.tokens("val"), np.zeros(4)
    place, size = {"rank": run.rank, "ranks": run.world_size}, rank.settings.batch_size
    model.eval()
    with torch.no_grad():
        for own in batches_of_rank(rank.order("val").sequences, wanted, **place, size=size):
            batch = rank.fixed_batch(tokens, own)
            counts = [int((labels != IGNORED).sum()) for labels in (batch.labels, batch.next_sentence_label)]
            # One graph of both, which runs once.
            means = torch.stack(losses_of(model, batch, rank.device)).tolist()
            totals += [means[0] * counts[0], counts[0], means[1] * counts[1], counts[1]]
    model.train()
    return totals


def save(rank: Rank, model: Any, optimizer: torch.optim.Optimizer, *, step: int, taken: int) -> None:
    """Write a checkpoint on rank 0, since all ranks have the same state; the others wait.

    A checkpoint is also a folder that transformers reads (BertForPreTraining.from_pretrained).
    """
    if rank.run.is_first:
        with checkpoints.writing(rank.run, step, settings=rank.settings) as folder:
            model.config.save_pretrained(str(folder))
            save_file(to_host(weights_of(model)), folder / WEIGHTS, metadata={"format": "pt"})
            torch.save(to_host(optimizer.state_dict()), folder / OPTIMIZER)
            order = rank.order("train").note()
            data = rank.manifest.sum_of_tokens
            progress = {"step": step, "sequences": taken, "order": order, "data": data}
            (folder / PROGRESS).write_text(json.dumps(progress) + "\n", encoding="utf-8")
    rank.device.wait_for_everyone()


def resume(rank: Rank, model: Any) -> tuple[int, int, dict[str, Any] | None]:
    """Load the newest checkpoint; return its step, the rows read until then, and the optimizer's state."""
    found = checkpoints.resume_from(rank.run)
    if found is None:
        return 0, 0, None
    with checkpoints.loading(found):
        progress = json.loads((found / PROGRESS).read_text(encoding="utf-8"))
        step, taken = int(progress["step"]), int(progress.get("sequences", 0))
        if progress["data"] != rank.manifest.sum_of_tokens:
            die(f"{found} holds a model of other data: give its text, or another RUN_NAME.")
        rank.order("train").check(found, progress.get("order"))
        load_weights(model, load_file(found / WEIGHTS))
        state: dict[str, Any] = torch.load(found / OPTIMIZER, map_location="cpu", weights_only=True)
    rank.run.say(f"resuming from {found}")
    return step, taken, state
