"""A small language model over several nodes, in plain PyTorch: put your own model and data in its place.

Two nodes:                 sbatch --nodes 2 /fsx/training/job.slurm workload_template
With other numbers:        MAX_STEPS=5000 sbatch --nodes 4 /fsx/training/job.slurm workload_template --seed 1
Continuing an old run:     RUN_NAME=job-17 sbatch --nodes 2 /fsx/training/job.slurm workload_template

launch.sh starts this program once for each rank. Every setting (settings.py) is an environment variable
(MODEL_LAYERS=6) and an argument (--model-layers 6). Folders, ranks and the world size come from job.slurm and
launch.sh; trainkit reads them.

Writes $RUN_DIR/metrics.jsonl (a line for each step) and $CHECKPOINT_DIR/step-<n>/; resumes from the newest of
those, with the losses of an uninterrupted run.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from settings import Settings, read_settings
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from trainkit.data.order import Order
from trainkit.memory import enough_memory, smaller_micro_steps
from trainkit.resuming import accumulated, own_options
from trainkit.run import checkpoints, outcome, process_group
from trainkit.run.finite import check_finite
from trainkit.run.mfu import flops_per_token
from trainkit.run.precision import check_precision
from trainkit.run.run import Run, die
from trainkit.run.steps import Steps
from trainkit.run.stopping import Saves, Stop
from trainkit.run.world import check_world
from trainkit.validation import batches_of_rank

# The model reads bytes, so it needs no tokenizer and accepts any text.
VOCABULARY = 256
GRADIENT_CLIP = 1.0
# One of this many bytes is for validation.
VALIDATION_EVERY = 20
PRECISIONS = {"bf16": torch.bfloat16, "fp16": torch.float16, "no": torch.float32}


class Model(nn.Module):
    """Decoder-only transformer over bytes."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        width, context = settings.model_width, settings.model_context
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Embedding(context, width)
        layer = nn.TransformerEncoderLayer(
            width, settings.model_heads, 4 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        # An encoder whose mask hides later positions is a decoder.
        self.layers = nn.TransformerEncoder(layer, settings.model_layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, VOCABULARY, bias=False)
        self.register_buffer(
            "mask", nn.Transformer.generate_square_subsequent_mask(context), persistent=False
        )

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return logits (batch, context, VOCABULARY) of the byte that follows each of (batch, context)."""
        places = torch.arange(ids.shape[1], device=ids.device)
        hidden = self.tokens(ids) + self.positions(places)
        logits: torch.Tensor = self.head(self.layers(hidden, mask=self.mask, is_causal=True))
        return logits


def open_device(settings: Settings, run: Run) -> torch.device:
    """Open the device of this rank; dies if it is missing or does not support the precision."""
    device = torch.device("cuda", run.local_rank) if settings.device == "cuda" else torch.device("cpu")
    check_precision(settings.mixed_precision, device)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    return device


def open_text(folder: Path, settings: Settings) -> tuple[torch.Tensor, torch.Tensor]:
    """Map the bytes that prepare.sh put together, without reading them; the last are for validation."""
    file = folder / "text.bin"
    if not file.is_file():
        die(f"{file} is missing: prepare.sh makes it.")
    size = file.stat().st_size
    training = size - size // VALIDATION_EVERY
    if min(training, size - training) <= settings.model_context + 1:
        die(f"{file} has {size} bytes, too few for validation: put more text into {folder / 'raw'}.")
    text = torch.from_file(str(file), size=size, dtype=torch.uint8)
    return text[:training], text[training:]


def order_of(text: torch.Tensor, settings: Settings) -> Order:
    """Return the order in which the sequences of a text are read: each once per epoch."""
    return Order(sequences=(len(text) - 1) // settings.model_context, seed=settings.seed)


def batch(text: torch.Tensor, settings: Settings, run: Run, *, first: int, number: int = 0) -> torch.Tensor:
    """Read (batch_size, model_context + 1) bytes: the `number`-th batch of this rank.

    They depend only on the seed and the position of the first sequence, so a resume on any number of ranks
    needs no other state of the data.
    """
    sequences = order_of(text, settings).batch(
        first, size=settings.batch_size, rank=run.rank, ranks=run.world_size, micro_step=number
    )
    return rows_of(text, settings, sequences)


def rows_of(text: torch.Tensor, settings: Settings, sequences: list[int]) -> torch.Tensor:
    """Read (sequences, model_context + 1) bytes."""
    starts = torch.tensor(sequences)[:, None] * settings.model_context
    return text[starts + torch.arange(settings.model_context + 1)].long()


class Trainer:
    """Model and optimizer of this rank, with the step that they have reached."""

    def __init__(self, settings: Settings, run: Run, device: torch.device) -> None:
        self._settings, self._run, self.device = settings, run, device
        torch.manual_seed(settings.seed)
        self.model = Model(settings).to(device)
        self._parallel = DistributedDataParallel(self.model)
        self._optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        # Small gradients would become zero in fp16; in other precisions the scaler does nothing.
        self._scaler = torch.amp.GradScaler(device.type, enabled=settings.mixed_precision == "fp16")
        self.step = self.tokens = 0

    @property
    def parameters(self) -> int:
        """Number of trained parameters without the positions'."""
        numbers = sum(each.numel() for each in self.model.parameters())
        return int(numbers - self.model.positions.weight.numel())

    @property
    def checkpoint_bytes(self) -> int:
        """Size of a checkpoint: weights and AdamW's two moments of 4 bytes each."""
        return 12 * self.parameters

    def loss(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the mean loss of (sequences, model_context + 1) bytes, in nats per byte."""
        rows, precision = rows.to(self.device), self._settings.mixed_precision
        with torch.autocast(self.device.type, PRECISIONS[precision], enabled=precision != "no"):
            # DDP exchanges the mask in each forward pass, and ranks validate different numbers of batches.
            logits = (self._parallel if torch.is_grad_enabled() else self.model)(rows[:, :-1])
        return nn.functional.cross_entropy(logits.flatten(0, 1).float(), rows[:, 1:].flatten())

    def train_step(self, micro_steps: list[torch.Tensor]) -> tuple[float, float]:
        """Make one update; return this rank's loss in nats per byte, and the norm of all ranks' gradients."""
        self.step += 1
        rate = self._settings.learning_rate * min(1.0, self.step / max(1, self._settings.warmup_steps))
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.zero_grad(set_to_none=True)
        mean = 0.0
        for rows in micro_steps:
            loss = self.loss(rows) / len(micro_steps)
            self._scaler.scale(loss).backward()
            mean += float(loss.item())
        self._scaler.unscale_(self._optimizer)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), GRADIENT_CLIP)
        self._scaler.step(self._optimizer)
        self._scaler.update()
        return mean, float(norm.item())

    def loss_scale(self) -> float | None:
        """Return the factor of the loss in fp16; None in other precisions."""
        return self._scaler.get_scale() if self._scaler.is_enabled() else None

    def learning_rate(self) -> float:
        """Return the learning rate of the last step."""
        rate: float = self._optimizer.param_groups[0]["lr"]
        return rate

    def save(self, order: Order) -> None:
        """Write a checkpoint on the first rank; the others have the same state, and wait in the next step."""
        if self._run.is_first:
            with checkpoints.writing(self._run, self.step, settings=self._settings) as folder:
                torch.save(self._state() | {"order": order.note()}, folder / "state.pt")

    def resume(self, order: Order) -> None:
        """Load the newest checkpoint, if there is one; dies if it was trained in another order."""
        found = checkpoints.resume_from(self._run)
        if found is None:
            return
        with checkpoints.loading(found):
            state = torch.load(found / "state.pt", map_location=self.device, weights_only=True)
            order.check(found, state.get("order"))
            self.model.load_state_dict(state["model"])
            with own_options(self._optimizer):
                self._optimizer.load_state_dict(state["optimizer"])
            self._scaler.load_state_dict(state["scaler"])
            self.step, self.tokens = state["step"], state["tokens"]
        self._run.say(f"resuming from {found}")

    def _state(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "tokens": self.tokens,
            "model": self.model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "scaler": self._scaler.state_dict(),
        }


def train(trainer: Trainer, settings: Settings, run: Run, device: torch.device) -> None:
    """Train from the newest checkpoint to the last step, or to the step when SIGTERM arrives."""
    stop = Stop()
    saves = Saves(run, settings, checkpoint_bytes=trainer.checkpoint_bytes, agree=process_group.agree)
    text, held_back = open_text(run.data_dir, settings)
    order = order_of(text, settings)
    trainer.resume(order)
    flops = flops_per_token(
        trainer.parameters, settings.model_layers, settings.model_width, settings.model_context
    )
    steps = Steps(run=run, settings=settings, after=trainer.step, device=device, flops_per_token=flops)
    tokens_a_step = (
        run.world_size * settings.gradient_accumulation * settings.batch_size * settings.model_context
    )
    while trainer.step < settings.max_steps:
        started = time.perf_counter()
        first = trainer.tokens // settings.model_context
        rows = [
            batch(text, settings, run, first=first, number=i) for i in range(settings.gradient_accumulation)
        ]
        data_s = time.perf_counter() - started
        own_loss, norm = trainer.train_step(rows)
        # All ranks sum the losses and the requests to stop, so they all decide the same.
        summed = torch.tensor([own_loss, float(stop.asked)], dtype=torch.float64, device=device)
        dist.all_reduce(summed)
        loss, is_stop = summed[0].item() / run.world_size, summed[1].item() > 0
        step_s = time.perf_counter() - started
        if trainer.step == steps.after + 1:
            process_group.shorten()
        trainer.tokens += tokens_a_step
        steps.add(
            step=trainer.step,
            loss=loss,
            grad_norm=norm,
            learning_rate=trainer.learning_rate(),
            tokens=trainer.tokens,
            tokens_per_s=tokens_a_step / step_s,
            step_s=step_s,
            data_s=data_s,
        )
        check_finite(run, step=trainer.step, loss=loss, gradient_norm=norm, loss_scale=trainer.loss_scale())
        is_last = trainer.step == settings.max_steps
        if saves.due(trainer.step) or is_stop:
            started = time.perf_counter()
            with process_group.patient(run, "saving"), checkpoints.saving(run):
                trainer.save(order)
            steps.saved(time.perf_counter() - started)
        if is_stop and not is_last:
            outcome.ended(run, trainer.step)
            return
        if settings.validates_after(trainer.step):
            validate(trainer, held_back, settings, run, steps)
    validate(trainer, held_back, settings, run, steps)
    outcome.ended(run, None)


def validate(trainer: Trainer, text: torch.Tensor, settings: Settings, run: Run, steps: Steps) -> None:
    """Record the mean loss over eval_sequences, which are always the same."""
    wanted, sequences = settings.eval_sequences, order_of(text, settings).sequences
    if not wanted:
        return
    started = time.perf_counter()
    with process_group.patient(run, "validating"), torch.no_grad():
        own = batches_of_rank(
            sequences, wanted, rank=run.rank, ranks=run.world_size, size=settings.batch_size
        )
        found = [(float(trainer.loss(rows_of(text, settings, each))) * len(each), len(each)) for each in own]
        sums = torch.tensor([(0.0, 0), *found], dtype=torch.float64, device=trainer.device).sum(0)
        dist.all_reduce(sums)
    seconds = time.perf_counter() - started
    steps.add_validation(step=trainer.step, loss=float(sums[0] / sums[1]), seconds=seconds)


def main() -> None:
    """Train as one rank."""
    settings, run = read_settings(), Run.from_environment()
    texts = {"text.bin": order_of(open_text(run.data_dir, settings)[0], settings).sequences}
    settings = accumulated(run, settings, texts=texts)
    device = open_device(settings, run)
    process_group.join(run, "nccl" if device.type == "cuda" else "gloo")
    check_world(device)
    used = f"BATCH_SIZE={settings.batch_size} and MODEL_CONTEXT={settings.model_context}"
    with enough_memory(used, lambda: smaller_micro_steps(settings, "a smaller MODEL_CONTEXT or model")):
        trainer = Trainer(settings, run, device)
        where = f"{run.world_size} ranks on {device.type}, precision {settings.mixed_precision}"
        run.say(f"{trainer.parameters / 1e6:.2f} M parameters, {where}")
        train(trainer, settings, run, device)
    process_group.leave()


if __name__ == "__main__":
    main()
