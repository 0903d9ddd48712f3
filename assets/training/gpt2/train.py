"""GPT-2 from scratch over several nodes, with transformers and accelerate.

Two nodes:                 sbatch --nodes 2 /fsx/training/job.slurm gpt2
With other numbers:        MAX_STEPS=5000 sbatch --nodes 4 /fsx/training/job.slurm gpt2 --seed 1
Going on with an old run:  RUN_NAME=job-17 sbatch --nodes 2 /fsx/training/job.slurm gpt2

train.sh starts this once a rank, through torchrun. Every setting below is an environment variable
(GPT2_LAYERS=6) and an argument (--gpt2-layers 6). Folders and the world come from job.slurm:
RUN_DIR, DATA_DIR, CHECKPOINT_DIR, EXPECTED_WORLD_SIZE, ACCELERATOR_KIND, MIXED_PRECISION.

Writes $RUN_DIR/metrics.jsonl (a line a step) and $CHECKPOINT_DIR/step-<n>/; starts from the newest
of those, and then gives the losses that an uninterrupted run gives.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import logging
import math
import os
import re
import shutil
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from metrics import Metrics
from transformers import GPT2Config, GPT2LMHeadModel

GRADIENT_CLIP = 1.0


@dataclasses.dataclass(frozen=True)
class Settings:
    """What may differ between runs. The defaults are GPT-2 124M as nanoGPT trains it."""

    gpt2_layers: int = 12
    gpt2_heads: int = 12
    gpt2_width: int = 768
    gpt2_context: int = 1024
    gpt2_dropout: float = 0.0
    vocab_size: int = 50257
    batch_size: int = 12
    """Sequences a rank and micro-step."""
    gradient_accumulation: int = 1
    """Micro-steps a step. Tokens a step = ranks * this * batch_size * gpt2_context."""
    max_steps: int = 1000
    learning_rate: float = 6e-4
    """At its highest; it ends at a tenth."""
    warmup_steps: int = 100
    weight_decay: float = 0.1
    seed: int = 1337
    checkpoint_every: int = 200
    keep_checkpoints: int = 2
    log_every: int = 10
    eval_batches: int = 20
    """Validation batches a rank, after the last step."""
    device: str = ""
    """cpu or cuda; by default what the instance family has."""
    mixed_precision: str = "no"
    """bf16, fp16 or no; the instance family says which."""


@dataclasses.dataclass(frozen=True)
class Folders:
    """Where job.slurm wants things."""

    metrics: Path
    data: Path
    checkpoints: Path


def die(sentence: str) -> NoReturn:
    """End this rank, and so the job, with one reason."""
    sys.exit(f"train.py on {socket.gethostname()}, rank {os.environ.get('RANK', '?')}: {sentence}")


def say(accelerator: Accelerator, text: str) -> None:
    """Print once; accelerator.print does it once a node."""
    if accelerator.is_main_process:
        print(text)


def read_settings() -> Settings:
    """Arguments win over the environment, the environment over the defaults."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for field in dataclasses.fields(Settings):
        default = os.environ.get(field.name.upper(), str(field.default))
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=type(field.default), default=default)
    settings = Settings(**vars(parser.parse_args()))
    if settings.gpt2_width % settings.gpt2_heads:
        die(f"GPT2_WIDTH {settings.gpt2_width} is no multiple of GPT2_HEADS {settings.gpt2_heads}.")
    device = settings.device or ("cuda" if os.environ.get("ACCELERATOR_KIND") == "gpu" else "cpu")
    return dataclasses.replace(settings, device=device)


def check_world(accelerator: Accelerator) -> None:
    """Every rank adds a one: the sum tells how many really take part."""
    expected = int(os.environ["EXPECTED_WORLD_SIZE"])
    ones = accelerator.reduce(torch.ones(1, device=accelerator.device), reduction="sum")
    present = round(ones.item())
    if present != expected:
        die(
            f"the world size is {present} and EXPECTED_WORLD_SIZE is {expected}, so nodes would train "
            "alone: compare torchrun's arguments in train.sh with the job's nodes."
        )


def open_tokens(folders: Folders, settings: Settings, split: str) -> np.ndarray[Any, np.dtype[np.uint16]]:
    """The tokens of one split ("train" or "val"), mapped, not read."""
    file = folders.data / f"vocab-{settings.vocab_size}" / f"{split}.bin"
    if not file.is_file():
        die(f"{file} is missing: prepare.sh makes it, with the same VOCAB_SIZE.")
    tokens = np.memmap(file, dtype=np.uint16, mode="r")
    if len(tokens) <= settings.gpt2_context:
        die(
            f"{file} has {len(tokens)} tokens, fewer than GPT2_CONTEXT ({settings.gpt2_context}) takes: "
            "add text to raw/ or lower it."
        )
    return tokens


def batch(
    tokens: np.ndarray[Any, np.dtype[np.uint16]], settings: Settings, *, key: list[int], device: torch.device
) -> torch.Tensor:
    """(batch_size, gpt2_context) token ids. The key (seed, step, micro-step, rank) alone decides which:
    nothing has to be remembered for a resume."""
    starts = np.random.default_rng(key).integers(0, len(tokens) - settings.gpt2_context, settings.batch_size)
    rows = np.stack([tokens[start : start + settings.gpt2_context] for start in starts])
    return torch.from_numpy(rows.astype(np.int64)).to(device)


def make_model(settings: Settings) -> GPT2LMHeadModel:
    """GPT-2 with random weights."""
    drop = settings.gpt2_dropout
    config = GPT2Config(
        # A multiple of 64 suits the matrix units.
        vocab_size=math.ceil(settings.vocab_size / 64) * 64,
        n_positions=settings.gpt2_context,
        n_embd=settings.gpt2_width,
        n_layer=settings.gpt2_layers,
        n_head=settings.gpt2_heads,
        resid_pdrop=drop,
        embd_pdrop=drop,
        attn_pdrop=drop,
        use_cache=False,
        bos_token_id=0,
        eos_token_id=0,
    )
    return GPT2LMHeadModel(config)


def loss_of(model: Any, ids: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy (nats a token) of each token after the first."""
    logits = model(input_ids=ids).logits[:, :-1]
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())


def make_optimizer(model: torch.nn.Module, settings: Settings) -> torch.optim.AdamW:
    """Matrices decay, biases and norms do not."""
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=(0.9, 0.95))


def learning_rate(step: int, settings: Settings) -> float:
    """Linear warm-up, then a cosine from the highest down to a tenth of it at max_steps."""
    if step <= settings.warmup_steps:
        return settings.learning_rate * step / settings.warmup_steps
    done = (step - settings.warmup_steps) / max(1, settings.max_steps - settings.warmup_steps)
    return settings.learning_rate * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * min(1.0, done))))


def checkpoints(folder: Path) -> list[Path]:
    """Complete ones, oldest first: a checkpoint gets its name when it is whole."""
    found = [path for path in folder.glob("step-*") if re.fullmatch(r"step-\d{6,}", path.name)]
    return sorted(found, key=lambda path: int(path.name.removeprefix("step-")))


def shape(settings: Settings) -> dict[str, int]:
    """What has to be equal for a checkpoint to fit."""
    names = ("gpt2_layers", "gpt2_heads", "gpt2_width", "gpt2_context", "vocab_size")
    return {name: getattr(settings, name) for name in names}


def save(accelerator: Accelerator, folders: Folders, settings: Settings, *, step: int, tokens: int) -> None:
    """Every rank writes its part beside, then rank 0 renames; only this run's own old ones go."""
    final = folders.checkpoints / f"step-{step:06d}"
    partial = folders.checkpoints / f".{final.name}.partial"
    if accelerator.is_main_process:
        for left in folders.checkpoints.glob(".step-*.partial"):
            shutil.rmtree(left)
    accelerator.wait_for_everyone()
    accelerator.save_state(str(partial))
    accelerator.wait_for_everyone()
    if not accelerator.is_main_process:
        return
    run = str(folders.metrics)
    progress = {"step": step, "tokens": tokens, "run": run, "shape": shape(settings)}
    (partial / "progress.json").write_text(json.dumps(progress) + "\n", encoding="utf-8")
    partial.rename(final)
    own = [path for path in checkpoints(folders.checkpoints) if read_progress(path)["run"] == run]
    for old in own[: -max(1, settings.keep_checkpoints)]:
        shutil.rmtree(old)
    print(f"step {step}: checkpoint {final}")


def read_progress(checkpoint: Path) -> dict[str, Any]:
    """What `save` noted beside the weights."""
    progress: dict[str, Any] = json.loads((checkpoint / "progress.json").read_text(encoding="utf-8"))
    return progress


def resume(accelerator: Accelerator, folders: Folders, settings: Settings) -> tuple[int, int]:
    """Load the newest checkpoint; the step and the tokens it stands at, or (0, 0)."""
    found = checkpoints(folders.checkpoints)
    if not found:
        return 0, 0
    progress = read_progress(found[-1])
    if progress["shape"] != shape(settings):
        die(f"{found[-1]} holds another model ({progress['shape']}): give its settings, or another RUN_NAME.")
    accelerator.load_state(str(found[-1]))
    say(accelerator, f"resuming from {found[-1]}")
    return progress["step"], progress["tokens"]


def mean(accelerator: Accelerator, *values: float) -> list[float]:
    """The mean over ranks of each value; one exchange."""
    own = torch.tensor(values, dtype=torch.float64, device=accelerator.device)
    summed = accelerator.reduce(own, reduction="sum").tolist()
    return [value / accelerator.num_processes for value in summed]


def train_step(
    accelerator: Accelerator, model: Any, optimizer: Any, micro_batches: list[torch.Tensor]
) -> float:
    """One update; the loss of this rank. Gradients are exchanged in the last micro-step only."""
    model.train()
    total = 0.0
    for i, ids in enumerate(micro_batches, start=1):
        last = i == len(micro_batches)
        with contextlib.nullcontext() if last else accelerator.no_sync(model):
            loss = loss_of(model, ids) / len(micro_batches)
            accelerator.backward(loss)
        total += loss.item()
    accelerator.clip_grad_norm_(model.parameters(), GRADIENT_CLIP)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return total


def validate(accelerator: Accelerator, model: Any, folders: Folders, settings: Settings) -> float:
    """Mean loss over eval_batches a rank, always the same ones."""
    tokens = open_tokens(folders, settings, "val")
    model.eval()
    total = 0.0
    with torch.no_grad():
        for i in range(settings.eval_batches):
            key = [settings.seed, 0, i, accelerator.process_index]
            ids = batch(tokens, settings, key=key, device=accelerator.device)
            total += loss_of(model, ids).item()
    return mean(accelerator, total / max(1, settings.eval_batches))[0]


def train(accelerator: Accelerator, model: Any, optimizer: Any, folders: Folders, settings: Settings) -> None:
    """From the newest checkpoint to the last step and validation, or to the step in which SIGTERM came."""
    # Slurm sends SIGTERM before it takes the nodes away: finish the step, save, leave.
    terminated: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: terminated.append(number))
    rank, ranks = accelerator.process_index, accelerator.num_processes
    micro_steps = range(settings.gradient_accumulation)
    tokens_a_step = ranks * len(micro_steps) * settings.batch_size * settings.gpt2_context
    first, tokens_seen = resume(accelerator, folders, settings)
    metrics = Metrics(folders.metrics, after_step=first) if accelerator.is_main_process else None
    data = open_tokens(folders, settings, "train")
    for step in range(first + 1, settings.max_steps + 1):
        started = time.perf_counter()
        rate = learning_rate(step, settings)
        for group in optimizer.param_groups:
            group["lr"] = rate
        keys = [[settings.seed, step, micro_step, rank] for micro_step in micro_steps]
        micro_batches = [batch(data, settings, key=key, device=accelerator.device) for key in keys]
        data_s = time.perf_counter() - started
        own_loss = train_step(accelerator, model, optimizer, micro_batches)
        # The losses, and whether any rank was told to stop: all ranks then decide the same.
        loss, stop = mean(accelerator, own_loss, len(terminated))
        step_s = time.perf_counter() - started
        tokens_seen += tokens_a_step
        if metrics:
            speed = {"tokens_per_s": tokens_a_step / step_s, "step_s": step_s, "data_s": data_s}
            progress = {"step": step, "loss": loss, "learning_rate": rate, "tokens": tokens_seen}
            line = metrics.add(**progress, **speed, world_size=ranks)
            if step % settings.log_every == 0 or step in {first + 1, settings.max_steps}:
                print(line)
        if step % settings.checkpoint_every == 0 or step == settings.max_steps or stop:
            save(accelerator, folders, settings, step=step, tokens=tokens_seen)
        if stop:
            say(accelerator, f"told to stop, saved at step {step}: submit with the same RUN_NAME to go on")
            return
    val_loss = validate(accelerator, model, folders, settings)
    if metrics:
        print(f"finished: {metrics.summary()}, validation loss {val_loss:.4f}")


def main() -> None:
    """One rank's whole life."""
    settings = read_settings()
    run, data, checkpoints_ = (Path(os.environ[name]) for name in ("RUN_DIR", "DATA_DIR", "CHECKPOINT_DIR"))
    folders = Folders(metrics=run / "metrics.jsonl", data=data, checkpoints=checkpoints_)
    if settings.device == "cuda" and not torch.cuda.is_available():
        die("no GPU is visible here: look with nvidia-smi, or train on CPUs with DEVICE=cpu.")
    accelerator = Accelerator(cpu=settings.device == "cpu", mixed_precision=settings.mixed_precision)
    # Not news that GPT-2's first and last matrix are the same one.
    logging.getLogger("accelerate.utils.other").setLevel(logging.ERROR)
    check_world(accelerator)
    set_seed(settings.seed)
    model = make_model(settings)
    # From here on the ranks draw different numbers (dropout).
    set_seed(settings.seed, device_specific=True)
    millions, threads = model.num_parameters() / 1e6, torch.get_num_threads()
    where = f"{accelerator.num_processes} ranks on {accelerator.device.type}, {threads} threads a rank"
    say(accelerator, f"GPT-2, {millions:.2f} M parameters, {where}, precision {settings.mixed_precision}")
    model, optimizer = accelerator.prepare(model, make_optimizer(model, settings))
    train(accelerator, model, optimizer, folders, settings)
    # The gradients' exchange goes before the process group that it uses: the other way round gloo waits
    # for ever in its destructor (torch 2.13).
    del model, optimizer
    accelerator.free_memory()
    accelerator.end_training()


if __name__ == "__main__":
    main()
