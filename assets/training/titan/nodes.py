"""Nodes of a job against the model: its degrees of parallelism, memory and precision. Needs no package."""

from __future__ import annotations

import difflib
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

from trainkit.fitting import (
    LOSS_CHUNKS,
    Choice,
    DoesNotFitError,
    Model,
    Nodes,
    choose,
    find_model,
    read_models,
    sizes_like,
)
from trainkit.run.run import die

if TYPE_CHECKING:
    from settings import Settings

MODELS = read_models(Path(__file__).with_name("models.json"))
"""Language models of torchtitan by size; others, which train on images too, are taken by CONFIG."""
FLOAT8_FROM = 8.9
"""Least compute capability with float8 (torchtitan.components.quantization.float8)."""
MASK_BLOCK = 128
"""Tokens of a block of torchtitan's attention mask."""


def sizes_of(model: str) -> list[str]:
    """List the sizes of a model: the published ones in torchtitan's order, then those for tests."""
    return sorted(MODELS[model], key=lambda size: size.startswith("debugmodel"))


def check_size(model: str, size: str) -> None:
    """Die unless torchtitan has the model in this size, or in any if it is empty."""
    if model not in MODELS:
        meant = difflib.get_close_matches(model.lower(), MODELS, n=1)
        hint = f" Did you mean {meant[0]}?" if meant else ""
        die(f'MODEL is "{model}"; allowed: {", ".join(MODELS)}, or another by CONFIG.{hint}')
    if size and size not in MODELS[model]:
        die(f'SIZE is "{size}"; torchtitan has {model} in {", ".join(sizes_of(model))}.')


def check_float8(settings: Settings, capability: str) -> None:
    """Die if the GPUs cannot multiply in float8.

    Args:
        capability: compute capability of the GPUs, such as 9.0; 0 of CPUs, empty if it is unknown.
    """
    if settings.float8 == "yes" and capability and float(capability) < FLOAT8_FROM:
        die(
            f"FLOAT8=yes needs GPUs of compute capability {FLOAT8_FROM} or more (g6, p5, p6), and those of "
            f"{os.environ.get('INSTANCE_TYPE', 'this partition')} have {capability}: give FLOAT8=no."
        )


def check_world(settings: Settings, world_size: int, ranks_a_node: int) -> None:
    """Die unless the degrees of parallelism fit the number of ranks, and the batch fits both."""
    settings = settings.with_choice(Choice())
    together = settings.ranks_a_replica
    if world_size % together:
        die(
            f"TP {settings.tp} x CP {settings.cp} are {together} ranks, which do not divide the {world_size} "
            f"ranks of this job: give degrees whose product divides {world_size}."
        )
    if settings.tp > ranks_a_node:
        die(
            f"TP is {settings.tp} and a node has {ranks_a_node} ranks; tensor parallelism waits for the "
            f"network in each layer: give at most {ranks_a_node}."
        )
    if settings.shard == "node" and (ranks_a_node % settings.tp or together > ranks_a_node):
        die(
            f"SHARD=node needs a product of TP and CP that divides a node's {ranks_a_node} ranks: give one, "
            "or SHARD=all."
        )
    sharing = ranks_a_node if settings.shard == "node" else world_size
    if sharing % settings.ep:
        die(f"EP is {settings.ep} and {sharing} ranks share the experts: give a divisor of {sharing}.")
    sequences = world_size // together * settings.batch_size
    if settings.global_batch % sequences:
        near = max(1, settings.global_batch // sequences) * sequences
        die(
            f"GLOBAL_BATCH is {settings.global_batch}, and a micro-step of all ranks has {sequences} "
            f"sequences: give a multiple of it, such as {near}."
        )
    # The attention mask has blocks of 128 tokens, and context parallelism cuts it into two parts a rank. The
    # loss is computed in parts of one size.
    divisor = settings.tp * (2 * settings.cp * MASK_BLOCK if settings.cp > 1 else 1)
    divisor = math.lcm(divisor, LOSS_CHUNKS)
    if settings.seq_len % divisor:
        die(
            f"SEQ_LEN is {settings.seq_len}; with TP {settings.tp} and CP {settings.cp} it must be a "
            f"multiple of {divisor}: give one, such as {divisor * -(-settings.seq_len // divisor)}."
        )


def size_of(settings: Settings, weights: str | None) -> str:
    """Return SIZE, else that of the weights or the smallest published one; die on weights of another size."""
    sizes = sizes_of(settings.model)
    alike = sizes_like({size: MODELS[settings.model][size] for size in sizes}, weights)
    size = settings.size or next(iter(alike), "")
    if size not in alike:
        others = (
            f"SIZE={' or '.join(alike)}"
            if alike
            else f"another MODEL: none of {', '.join(sizes)} is of this size"
        )
        die(f"the weights {weights} are not those of {settings.model}{size and f' {size}'}: give {others}.")
    return size


def known_model(settings: Settings, weights: str | None = None) -> Model | None:
    """Return the size of the model, by SIZE or by the weights; None of a CONFIG or another unknown one."""
    return None if settings.config else find_model(MODELS[settings.model], settings.size, weights)


def fit(
    settings: Settings, *, nodes: int, ranks_a_node: int, weights: str | None = None
) -> tuple[Settings, list[str]]:
    """Fill the settings that decide on memory; dies if the model cannot fit.

    Args:
        nodes: number of nodes of the job.
        weights: folder of the weights to start from.

    Returns:
        The settings, and a sentence for each that was chosen; none where the memory is unknown.
    """
    memory = os.environ.get("ACCELERATOR_MEMORY_GIB")
    model = None if settings.is_cpu else known_model(settings, weights)
    if not memory or not model:
        return settings.with_choice(Choice()), []
    name = os.environ.get("INSTANCE_TYPE", "this partition")
    try:
        choice, reasons = choose(
            model,
            settings.of_memory,
            Nodes(count=nodes, gpus=ranks_a_node, memory_gib=float(memory), name=name),
            seq_len=settings.seq_len,
            global_batch=settings.global_batch,
            lora=bool(settings.lora_rank),
            compiled=settings.compile != "no",
        )
    except DoesNotFitError as error:
        die(f"{settings.model} {settings.size or ''} does not fit: {error}")
    return settings.with_choice(choice), reasons
