"""Settings of a run of roberta, and the command line of fairseq-train made of them. Needs no package.

Every field of Settings is an environment variable (ROBERTA_LAYERS=6) and an argument (--roberta-layers 6).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from trainkit.data.bpe import GPT2_VOCAB_SIZE
from trainkit.resuming import check_batch
from trainkit.run.run import die
from trainkit.run.settings import (
    MAY_BE_ZERO,
    AccumulatingSettings,
    check_number,
    family_device,
    fill_settings,
)

# Share of tokens that the model has to guess (fairseq's default, RoBERTa's paper 2.2); its output layer
# computes these alone.
MASKED_SHARE = 0.15
# Symbols of fairseq (<s>, <pad>, </s>, <unk>), and <mask> of masked_lm.
SPECIAL_SYMBOLS = 5
# The first position follows <pad>'s.
EXTRA_POSITIONS = 2
# Bytes of a parameter in a checkpoint: the weight and Adam's two moments, each in fp32 at most.
CHECKPOINT_BYTES = 12
# An epoch that no run reaches, since validation and checkpoints follow updates instead of epochs.
NEVER = 2**31 - 1
# Folder of fairseq's files beside the shards, and the file of its symbols.
DATA_FOLDER, DICTIONARY = "fairseq", "dict.txt"
# The smallest vocabulary has room for 256 bytes and the end of text.
VOCAB_SIZES = range(300, 1_000_001)


@dataclasses.dataclass(frozen=True)
class Settings(AccumulatingSettings):
    """Settings of a run. The defaults are the walk-through's RoBERTa-large, on 16 V100 of two p3dn."""

    corpus: Literal["", "wikitext-103", "machine", "raw"] = ""
    """wikitext-103, machine or raw; empty: raw if you provide files, otherwise wikitext-103."""
    vocab_size: int = GPT2_VOCAB_SIZE
    """50257: GPT-2's BPE; any other: a BPE of that size, trained on the corpus."""
    roberta_layers: int = 24
    roberta_heads: int = 16
    roberta_width: int = 1024
    roberta_context: int = 512
    """Tokens of a sequence."""
    roberta_dropout: float = 0.1
    batch_size: int = 8
    """Sequences of a rank and micro-step."""
    gradient_accumulation: int = 1
    """Micro-steps of a step (update-freq of fairseq)."""
    max_steps: int = 500
    warmup_steps: int = 24000
    learning_rate: float = 6e-4
    """Highest learning rate; it falls linearly to zero at max_steps."""
    weight_decay: float = 0.01
    seed: int = 1
    device: Literal["", "cpu", "cuda"] = ""
    data_workers: int = 2
    """Processes of a rank that read and mask; 0: the rank itself."""
    sentinel_every: int = 0
    """Steps between two comparisons of the ranks (trainkit/sentinel.py); 0 for none."""
    bucket_cap_mb: int = 200
    """Size of the gradients that are exchanged together, on GPUs."""
    checkpoint_every: int = 100
    log_every: int = 25
    eval_every: int = 0
    """Steps between two validations, which follow each checkpoint, too."""

    @property
    def kept(self) -> tuple[str, ...]:
        """Names of the settings of the model."""
        return ("roberta_layers", "roberta_heads", "roberta_width", "roberta_context")


def read_settings(arguments: Sequence[str] | None = None) -> Settings:
    """Read the settings of this run; dies if one is invalid or contradicts another."""
    settings = fill_settings(
        Settings,
        arguments,
        about="RoBERTa pretraining with fairseq.",
        may_be_zero=MAY_BE_ZERO | {"data_workers", "sentinel_every"},
    )
    settings = dataclasses.replace(settings, device=settings.device or family_device())
    check_number("VOCAB_SIZE", VOCAB_SIZES, settings.vocab_size)
    if settings.roberta_width % settings.roberta_heads:
        width, heads = settings.roberta_width, settings.roberta_heads
        die(f"ROBERTA_WIDTH {width} is not a multiple of ROBERTA_HEADS {heads}.")
    if settings.epochs:
        die("EPOCHS has no effect here, since fairseq joins sentences to sequences itself: give MAX_STEPS.")
    return settings


def check_job(settings: Settings, nodes: int) -> None:
    """Die if the nodes cannot divide the global batch; `trainctl submit` calls it before nodes start."""
    check_batch(settings, nodes)


def layer_parameters(settings: Settings) -> int:
    """Count the parameters of all encoder layers: attention 4d² + 4d, feed-forward 8d² + 5d, two norms 4d."""
    width = settings.roberta_width
    return settings.roberta_layers * (12 * width**2 + 13 * width)


def parameters(settings: Settings, symbols: int) -> int:
    """Count the parameters of the model as fairseq does; the output layer shares the embedding's matrix."""
    width = settings.roberta_width
    embedding = (symbols + settings.roberta_context + EXTRA_POSITIONS) * width + 2 * width
    head = width**2 + 3 * width + symbols
    return layer_parameters(settings) + embedding + head


def computing_parameters(settings: Settings, symbols: int) -> int:
    """Count the parameters that multiply a token; the output layer's count by the masked share."""
    width = settings.roberta_width
    return layer_parameters(settings) + round(MASKED_SHARE * (width**2 + symbols * width))


def check_checkpoint(checkpoint: Path, progress: Mapping[str, Any], *, dictionary_sha256: str) -> None:
    """Die unless the checkpoint is of this dictionary."""
    if progress["dictionary_sha256"] != dictionary_sha256:
        die(
            f"{checkpoint} was trained with another dict.txt, so its token numbers mean other words: give "
            "its CORPUS and VOCAB_SIZE, or another RUN_NAME."
        )


def fairseq_arguments(
    settings: Settings,
    *,
    data: Path,
    save_dir: Path,
    restore_file: Path | None,
    rank: int,
    local_rank: int,
    world_size: int,
) -> list[str]:
    """Return the command line of fairseq-train.

    World size, rank and rendezvous are explicit: with one rank on each node, fairseq would otherwise make a
    world of each node, and they would train alone.
    """
    on_gpu = settings.device == "cuda"
    options: dict[str, object] = {
        "task": "recorded_masked_lm",
        "criterion": "masked_lm",
        "arch": "roberta_large",
        "encoder-layers": settings.roberta_layers,
        "encoder-embed-dim": settings.roberta_width,
        "encoder-ffn-embed-dim": 4 * settings.roberta_width,
        "encoder-attention-heads": settings.roberta_heads,
        "max-positions": settings.roberta_context,
        "tokens-per-sample": settings.roberta_context,
        "sample-break-mode": "complete",
        "mask-prob": MASKED_SHARE,
        "dropout": settings.roberta_dropout,
        "attention-dropout": settings.roberta_dropout,
        "batch-size": settings.batch_size,
        # fairseq otherwise cuts batches to multiples of 8.
        "required-batch-size-multiple": 1,
        "update-freq": settings.gradient_accumulation,
        "optimizer": "adam",
        "adam-betas": "(0.9, 0.98)",
        "adam-eps": 1e-06,
        "weight-decay": settings.weight_decay,
        # Otherwise a resume has its checkpoint's.
        "optimizer-overrides": {"weight_decay": settings.weight_decay},
        "clip-norm": 1.0,
        "lr-scheduler": "polynomial_decay",
        "lr": settings.learning_rate,
        "warmup-updates": settings.warmup_steps,
        "total-num-update": settings.max_steps,
        "max-update": settings.max_steps,
        "seed": settings.seed,
        "num-workers": settings.data_workers,
        "log-format": "json",
        "log-interval": settings.log_every,
        "save-dir": save_dir,
        "save-interval": NEVER,
        "save-interval-updates": settings.checkpoint_every,
        "validate-interval": NEVER,
        "validate-interval-updates": settings.eval_every,
        "max-valid-steps": max(0, -(-settings.eval_sequences // (settings.batch_size * world_size)) - 1),
        "distributed-world-size": world_size,
        "distributed-rank": rank,
        "distributed-init-method": "env://",
        "distributed-backend": "nccl" if on_gpu else "gloo",
        "device-id": local_rank,
        "ddp-backend": "c10d" if on_gpu else "legacy_ddp",
        "bucket-cap-mb": settings.bucket_cap_mb,
    }
    if restore_file:
        options["restore-file"] = restore_file
    flags = ["distributed-no-spawn", "skip-invalid-size-inputs-valid-test"]
    flags += {"fp16": ["fp16", "memory-efficient-fp16"], "bf16": ["bf16"], "no": []}[settings.mixed_precision]
    flags += [] if on_gpu else ["cpu"]
    flags += [] if settings.eval_sequences else ["disable-validation"]
    pairs = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    return [str(data), *pairs, *(f"--{flag}" for flag in flags)]
