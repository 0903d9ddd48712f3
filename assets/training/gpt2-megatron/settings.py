"""Settings of a run of gpt2-megatron, as environment variables or arguments. Needs no package."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trainkit.data.documents import OWN
from trainkit.run.run import Run, die
from trainkit.run.settings import (
    MAY_BE_ZERO,
    VALIDATION_SHARES,
    TrainSettings,
    check_number,
    check_variable,
    family_device,
    fill_settings,
    ranks_of_node,
)
from trainkit.source import ExportSettings, check_export

# Megatron pads the vocabulary to a multiple of this, on each tensor parallel rank.
VOCAB_MULTIPLE = 128
# Folder of Megatron's files beside the shards.
DATA_FOLDER = "megatron"
CORPORA = ("wikipedia", "machine", OWN)
# The 256 bytes and the end of text have to fit; a token is at most four bytes in the files.
VOCAB_SIZES = range(300, 2**31)


@dataclass(frozen=True)
class Settings(TrainSettings, ExportSettings):
    """Settings of a run. The defaults are GPT-2 345M of the Megatron-LM paper (1909.08053)."""

    gpt2_layers: int = 24
    gpt2_heads: int = 16
    gpt2_width: int = 1024
    gpt2_context: int = 1024
    gpt2_dropout: float = 0.1
    vocab_size: int = 50257
    tensor_parallel: int = 1
    """Number of ranks that share the matrices of each layer."""
    pipeline_parallel: int = 1
    """Number of ranks over which the layers are divided."""
    micro_batch_size: int = 8
    """Sequences that a rank computes at a time."""
    global_batch_size: int = 512
    """Sequences of a step, of all ranks together."""
    max_steps: int = 5000
    warmup_steps: int = 50
    learning_rate: float = 1.5e-4
    min_learning_rate: float = 1e-5
    weight_decay: float = 0.01
    seed: int = 1234
    checkpoint_every: int = 500
    eval_every: int = 500
    init_from: str = "scratch"
    """scratch, megatron-345m, or the path of a file model_optim_rng.pt in that format."""
    device: Literal["", "cpu", "cuda"] = ""
    # fp16 needs loss scaling, and only V100 GPUs need fp16, which this workload does not support.
    mixed_precision: Literal["bf16", "no"] = "no"
    transformer_impl: Literal["", "transformer_engine", "local"] = ""
    """transformer_engine or local; empty for transformer_engine on GPUs and local on CPUs."""

    @property
    def kept(self) -> tuple[str, ...]:
        """Names of the settings that determine the pieces of a checkpoint, and the samples after a step."""
        return (
            *("gpt2_layers", "gpt2_heads", "gpt2_width", "gpt2_context", "vocab_size"),
            *("tensor_parallel", "pipeline_parallel", "mixed_precision", "transformer_impl"),
            *("seed", "global_batch_size"),
        )

    @property
    def ranks_of_model(self) -> int:
        """Number of ranks that share one model, and read the same samples."""
        return self.tensor_parallel * self.pipeline_parallel

    @property
    def padded_vocab_size(self) -> int:
        """Number of rows of the word embeddings."""
        multiple = VOCAB_MULTIPLE * self.tensor_parallel
        return -(-self.vocab_size // multiple) * multiple


@dataclass(frozen=True)
class Sizes:
    """Sizes of the parallel groups in which the ranks share the work."""

    tensor: int
    pipeline: int
    data: int
    micro_batches: int
    """Micro-batches that a data parallel rank computes in a step."""


def read_settings(arguments: list[str] | None = None) -> Settings:
    """Read the settings of this run; dies if one is invalid."""
    settings = fill_settings(
        Settings,
        arguments,
        about="Trains GPT-2 with Megatron's core.",
        may_be_zero=MAY_BE_ZERO | {"export_step"},
    )
    check_export(settings)
    if not settings.gpt2_dropout < 1:
        die(f"GPT2_DROPOUT is {settings.gpt2_dropout}: give a share below 1.")
    device = settings.device or family_device()
    implementation = settings.transformer_impl or ("transformer_engine" if device == "cuda" else "local")
    check_variable("CORPUS", CORPORA)
    check_number("VALIDATION_EVERY", VALIDATION_SHARES)
    check_number("VOCAB_SIZE", VOCAB_SIZES, settings.vocab_size)
    return dataclasses.replace(settings, device=device, transformer_impl=implementation)


def divisors(number: int) -> str:
    """List all divisors of a number, for an error message."""
    return ", ".join(str(each) for each in range(1, number + 1) if number % each == 0)


def sizes_of(settings: Settings, *, nodes: int, ranks_a_node: int) -> Sizes:
    """Divide the ranks into parallel groups; dies with the valid choices if they do not divide."""
    world, tensor, pipeline = nodes * ranks_a_node, settings.tensor_parallel, settings.pipeline_parallel
    if settings.gpt2_width % settings.gpt2_heads:
        die(
            f"GPT2_WIDTH is {settings.gpt2_width}, not a multiple of GPT2_HEADS, {settings.gpt2_heads}: "
            f"give one of {divisors(settings.gpt2_width)} heads."
        )
    if settings.gpt2_heads % tensor:
        die(
            f"TENSOR_PARALLEL is {tensor} and the model has {settings.gpt2_heads} heads (GPT2_HEADS): "
            f"give one of {divisors(settings.gpt2_heads)}."
        )
    if settings.gpt2_layers % pipeline:
        die(
            f"PIPELINE_PARALLEL is {pipeline} and the model has {settings.gpt2_layers} layers (GPT2_LAYERS): "
            f"give one of {divisors(settings.gpt2_layers)}."
        )
    if world % (tensor * pipeline):
        die(
            f"TENSOR_PARALLEL x PIPELINE_PARALLEL is {tensor} x {pipeline} = {tensor * pipeline} and the job "
            f"has {world} ranks ({nodes} nodes x {ranks_a_node}): the product must be one of "
            f"{divisors(world)}."
        )
    data = world // (tensor * pipeline)
    if settings.global_batch_size % (settings.micro_batch_size * data):
        die(
            f"GLOBAL_BATCH_SIZE is {settings.global_batch_size}, not a multiple of MICRO_BATCH_SIZE x data "
            f"parallel ranks, {settings.micro_batch_size} x {data} = "
            f"{settings.micro_batch_size * data}: give a multiple."
        )
    return Sizes(tensor, pipeline, data, settings.global_batch_size // (settings.micro_batch_size * data))


def check_job(settings: Settings, nodes: int) -> None:
    """Die if the ranks of a job do not divide; `trainctl submit` calls it before nodes start.

    Args:
        settings: settings of the job, from read_settings.
        nodes: number of nodes of the job. The ranks of each are in the environment.
    """
    if settings.trains:
        sizes_of(settings, nodes=nodes, ranks_a_node=ranks_of_node())


def sizes_of_job(settings: Settings, run: Run) -> Sizes:
    """Divide the ranks of this rank's job, as `sizes_of` does."""
    nodes = int(os.environ.get("NNODES", "1"))
    return sizes_of(settings, nodes=nodes, ranks_a_node=run.world_size // nodes)


def weights_file(settings: Settings, run: Run) -> Path | None:
    """Find the file of weights that the run begins with; dies if it does not exist."""
    if settings.init_from == "scratch":
        return None
    file = published_file(run.data_dir) if settings.init_from == "megatron-345m" else Path(settings.init_from)
    if not file.is_file():
        die(
            f"INIT_FROM is {settings.init_from}, and there is no file {file}: give scratch, megatron-345m or "
            "a file model_optim_rng.pt of that format."
        )
    return file


def published_file(data_dir: Path) -> Path:
    """Return the path to which prepare.py extracts NVIDIA's checkpoint."""
    return data_dir / "models" / "megatron_lm_345m_v0.0" / "model_optim_rng.pt"
