"""What may differ between runs of roberta, and how fairseq-train is told. Needs no package.

Every field of Settings is an environment variable (ROBERTA_LAYERS=6) and an argument (--roberta-layers 6).
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from trainkit.data.documents import OWN, own_files

# Of the tokens, those that the model has to guess (fairseq's default, RoBERTa's paper 2.2): its output layer
# computes for these only.
MASKED_SHARE = 0.15
# fairseq puts <s>, <pad>, </s> and <unk> before the dictionary's symbols, and masked_lm <mask> behind.
SPECIAL_SYMBOLS = 5
# Positions begin behind the one of <pad>.
EXTRA_POSITIONS = 2
# Bytes a parameter of a checkpoint: the weight, and Adam's two moments, each in fp32 at most.
CHECKPOINT_BYTES = 12
# Epochs and updates that never come: validation and saving go by updates, and at the end.
NEVER = 2**31 - 1
CORPORA = ("wikitext-103", "machine", OWN)
# The 256 bytes and the end of text have to fit; fairseq's files hold more than anyone's vocabulary.
VOCAB_SIZES = range(300, 1_000_001)
GPT2_VOCAB_SIZE = 50257


class SettingsError(Exception):
    """Which setting is wrong, and what is allowed, in one sentence."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """The defaults are RoBERTa-large as the walk-through trains it, on 16 V100 of two p3dn."""

    corpus: str = ""
    """wikitext-103, machine or raw; empty: raw if there are files of yours, else wikitext-103."""
    vocab_size: int = GPT2_VOCAB_SIZE
    """50257: GPT-2's BPE; any other: a BPE of that size, trained on the corpus."""
    roberta_layers: int = 24
    roberta_heads: int = 16
    roberta_width: int = 1024
    roberta_context: int = 512
    """Tokens a sequence."""
    roberta_dropout: float = 0.1
    batch_size: int = 8
    """Sequences a rank and micro-step."""
    gradient_accumulation: int = 1
    """Micro-steps a step (fairseq: update-freq)."""
    max_steps: int = 500
    warmup_steps: int = 24000
    learning_rate: float = 6e-4
    """At its highest; it falls to nothing at max_steps, in a straight line."""
    weight_decay: float = 0.01
    seed: int = 1
    data_workers: int = 2
    """Processes a rank that read and mask; 0: the rank itself."""
    bucket_cap_mb: int = 200
    """Gradients that are exchanged together, on GPUs."""
    checkpoint_every: int = 100
    keep_checkpoints: int = 2
    log_every: int = 25
    eval_batches: int = 20
    """Validation batches a rank, at each checkpoint; 0: none."""
    device: str = ""
    """cuda or cpu; empty: what the family has."""
    mixed_precision: str = "no"
    """fp16 (with loss scaling), bf16 or no."""


class _Parser(argparse.ArgumentParser):
    """An argument that is wrong is told like any other setting."""

    def error(self, message: str) -> NoReturn:
        raise SettingsError(f"{message} (as a variable: in capitals, with _).")


def read_settings(arguments: Sequence[str], environment: Mapping[str, str]) -> Settings:
    """Arguments win over the environment, the environment over the defaults.

    Raises:
        SettingsError: a value that is none, or that contradicts another.
    """
    parser = _Parser(description="RoBERTa pretraining with fairseq.", allow_abbrev=False)
    for field in dataclasses.fields(Settings):
        default = environment.get(field.name.upper()) or str(field.default)
        kind = type(field.default)
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=kind, default=default)
    settings = Settings(**vars(parser.parse_args(arguments)))
    device = settings.device or ("cuda" if environment.get("ACCELERATOR_KIND") == "gpu" else "cpu")
    settings = dataclasses.replace(settings, device=device)
    _check(settings)
    return settings


def _check(settings: Settings) -> None:
    choices = {"device": ("cuda", "cpu"), "mixed_precision": ("fp16", "bf16", "no"), "corpus": ("", *CORPORA)}
    for name, allowed in choices.items():
        if getattr(settings, name) not in allowed:
            known = ", ".join(choice for choice in allowed if choice)
            raise SettingsError(f'{name.upper()} is "{getattr(settings, name)}"; allowed: {known}.')
    zero_is_fine = {"data_workers", "eval_batches", "warmup_steps", "seed"}
    for field in dataclasses.fields(Settings):
        value = getattr(settings, field.name)
        if isinstance(value, int) and value < (0 if field.name in zero_is_fine else 1):
            raise SettingsError(f"{field.name.upper()} is {value}: give a number above it.")
    if settings.vocab_size not in VOCAB_SIZES:
        allowed_sizes = f"{VOCAB_SIZES.start} to {VOCAB_SIZES.stop - 1}"
        raise SettingsError(f"VOCAB_SIZE is {settings.vocab_size}; allowed: {allowed_sizes}.")
    if settings.roberta_width % settings.roberta_heads:
        width, heads = settings.roberta_width, settings.roberta_heads
        raise SettingsError(f"ROBERTA_WIDTH {width} is no multiple of ROBERTA_HEADS {heads}.")


def choose_corpus(wanted: str, *, data: Path) -> str:
    """Return the wanted corpus, else your own files if there are any in DATA_DIR/raw, else WikiText-103."""
    return wanted or (OWN if own_files(data) else "wikitext-103")


def data_folder(data: Path, *, corpus: str, vocab_size: int) -> Path:
    """Where the binary data of a corpus and a vocabulary is, or will be."""
    return data / f"{corpus}-bpe-{vocab_size}"


def layer_parameters(settings: Settings) -> int:
    """Of all encoder layers: attention 4d² + 4d, feed-forward 8d² + 5d, two norms 4d."""
    width = settings.roberta_width
    return settings.roberta_layers * (12 * width**2 + 13 * width)


def parameters(settings: Settings, symbols: int) -> int:
    """Of the whole model, as fairseq counts it; the output layer shares the embedding's matrix."""
    width = settings.roberta_width
    embedding = (symbols + settings.roberta_context + EXTRA_POSITIONS) * width + 2 * width
    head = width**2 + 3 * width + symbols
    return layer_parameters(settings) + embedding + head


def computing_parameters(settings: Settings, symbols: int) -> int:
    """Those that a token is multiplied with, the output layer's by the share of tokens that reach it."""
    width = settings.roberta_width
    return layer_parameters(settings) + round(MASKED_SHARE * (width**2 + symbols * width))


def shape(settings: Settings, symbols: int) -> dict[str, int]:
    """What has to be equal for a checkpoint to fit."""
    names = ("roberta_layers", "roberta_heads", "roberta_width", "roberta_context")
    return {name: getattr(settings, name) for name in names} | {"symbols": symbols}


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
    """The command line of fairseq-train. World size, rank and rendezvous are explicit: where a node has one
    rank, fairseq would otherwise make a world of each node, and let them train alone."""
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
        # Otherwise batches are cut to multiples of 8.
        "required-batch-size-multiple": 1,
        "update-freq": settings.gradient_accumulation,
        "optimizer": "adam",
        "adam-betas": "(0.9, 0.98)",
        "adam-eps": 1e-06,
        "weight-decay": settings.weight_decay,
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
        "max-valid-steps": max(0, settings.eval_batches - 1),
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
    flags += [] if settings.eval_batches else ["disable-validation"]
    pairs = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    return [str(data), *pairs, *(f"--{flag}" for flag in flags)]
