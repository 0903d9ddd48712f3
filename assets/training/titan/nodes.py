"""Nodes of a job against the model: what torchtitan can divide, memory and precision. Needs no package."""

from __future__ import annotations

import dataclasses
import difflib
import math
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from fields import Settings
from trainkit.data.hf_weights import config_of
from trainkit.fitting import LOSS_CHUNKS, SPEED, DoesNotFitError, choose, memory_gib
from trainkit.run.run import die
from trainkit.run.settings import ranks_of_node
from trainkit.sizes import Choice, Model, Nodes, read_models, sizes_like

MODELS = read_models(Path(__file__).with_name("models.json"))
"""Language models of torchtitan by size; others, which train on images too, are taken by CONFIG."""
FLOAT8_FROM = {"yes": (8.9, "g6, p5, p6"), "mx": (10.0, "p6")}
"""Least compute capability of each FLOAT8 (torchtitan.components.quantization), and families that have it."""
MASK_BLOCK = 128
"""Tokens of a block of torchtitan's attention mask."""
QUANTIZED = {"deepseek_v3": "fp8", "gpt_oss": "mxfp4"}
"""Quantization of published weights that torchtitan reads, of each model."""


def check_size(model: str, size: str) -> None:
    """Die unless torchtitan has the model in this size, or in any if it is empty."""
    if model not in MODELS:
        meant = difflib.get_close_matches(model.lower(), MODELS, n=1)
        hint = f" Did you mean {meant[0]}?" if meant else ""
        die(f'MODEL is "{model}"; allowed: {", ".join(MODELS)}, or another by CONFIG.{hint}')
    if size and size not in MODELS[model]:
        die(f'SIZE is "{size}"; torchtitan has {model} in {", ".join(MODELS[model])}.')


def check_float8(settings: Settings) -> None:
    """Die if the GPUs cannot multiply in float8."""
    capability = "0" if settings.is_cpu else os.environ.get("COMPUTE_CAPABILITY", "")  # empty if unknown
    least, families = FLOAT8_FROM.get(settings.float8, (0.0, ""))
    if capability and float(capability) < least:
        die(
            f"FLOAT8={settings.float8} needs GPUs of compute capability {least} or more ({families}), and "
            f"those of {os.environ.get('INSTANCE_TYPE', 'this partition')} have {capability}: give FLOAT8=no."
        )


def micro_step(choice: Choice, nodes: Nodes) -> int:
    """Return the sequences that all ranks have in a micro-step."""
    return readers(choice, nodes.ranks) * choice.batch_size


def readers(choice: Choice | Settings, ranks: int) -> int:
    """Return how many of the ranks read different data: those of a pipeline, of TP and of CP share theirs."""
    return ranks // (choice.pp * choice.tp * choice.cp)


def faults_of(
    model: Model | None, choice: Choice, nodes: Nodes, *, seq_len: int, global_batch: int
) -> Iterator[str]:
    """Yield the reasons why torchtitan 0.3.0 cannot train in a layout, and what to give.

    Args:
        model: None if its size is unknown, which leaves out its own limits.
        seq_len: tokens of a training sequence.
        global_batch: sequences of a step over all ranks; 0 for one micro-step a step.
    """
    together = choice.tp * choice.cp
    sharing = sharing_state(choice, nodes)
    if nodes.ranks % (choice.pp * together):
        yield (
            f"PP {choice.pp} x TP {choice.tp} x CP {choice.cp} are {choice.pp * together} ranks, which do "
            f"not divide the {nodes.ranks} of this job: give degrees whose product divides {nodes.ranks}."
        )
    if choice.pp > choice.batch_size:
        yield (
            f"PP is {choice.pp} and BATCH_SIZE {choice.batch_size}; each stage of a pipeline takes another "
            f"sequence of it: give at least {choice.pp}, or {4 * choice.pp} for stages that wait less."
        )
    if choice.tp > nodes.gpus:
        yield (
            f"TP is {choice.tp} and a node has {nodes.gpus} ranks; tensor parallelism waits for the "
            f"network in each layer: give at most {nodes.gpus}."
        )
    if choice.shard == "node" and nodes.gpus % together:
        yield (
            f"SHARD=node needs a product of TP and CP that divides a node's {nodes.gpus} ranks: give one, "
            "or SHARD=all."
        )
    if choice.shard == "node" and nodes.count % choice.pp:
        yield f"SHARD=node needs a PP that divides the {nodes.count} nodes: give one, or SHARD=all."
    if sharing % choice.ep:
        yield f"EP is {choice.ep} and {sharing} ranks share the experts: give a divisor of {sharing}."
    sequences = micro_step(choice, nodes)
    if global_batch % sequences:
        near = max(1, global_batch // sequences) * sequences
        share, rest = divmod(global_batch, sequences // choice.batch_size)
        other = "another number of nodes" if rest else f"BATCH_SIZE={math.gcd(share, choice.batch_size)}"
        yield (
            f"GLOBAL_BATCH is {global_batch} (that of the run so far, if you gave none), and a micro-step of "
            f"all ranks has {sequences} sequences: give {other}, or a multiple, such as GLOBAL_BATCH={near}."
        )
    # The attention mask has blocks of 128 tokens, and context parallelism cuts it into two parts a rank. The
    # loss is computed in parts of one size.
    divisor = choice.tp * (2 * choice.cp * MASK_BLOCK if choice.cp > 1 else 1)
    divisor = math.lcm(divisor, LOSS_CHUNKS)
    if seq_len % divisor:
        yield (
            f"SEQ_LEN is {seq_len}; with TP {choice.tp} and CP {choice.cp} it must be a "
            f"multiple of {divisor}: give one, such as {divisor * -(-seq_len // divisor)}."
        )
    if model:
        yield from faults_of_model(model, choice, nodes, seq_len=seq_len)


def sharing_state(choice: Choice, nodes: Nodes) -> int:
    """Return the ranks that divide the state of a stage among them."""
    return nodes.gpus if choice.shard == "node" else nodes.ranks // choice.pp


def faults_of_model(model: Model, choice: Choice, nodes: Nodes, *, seq_len: int) -> Iterator[str]:
    """Yield the limits of the model that forbid a layout, which divides the ranks.

    They are those of torchtitan 0.3.0's Decoder.Config.update_from_config (heads, positions), of its
    dispatcher of tokens (experts), and of FSDP2, which apply_fsdp_to_decoder lets cut the experts' matrices
    where there are more ranks than experts: into equal parts only.
    """
    heads = math.gcd(model.heads, model.kv_heads)
    if heads % choice.tp:
        yield (
            f"TP is {choice.tp} and the model has {model.heads} heads, {model.kv_heads} of keys and values: "
            f"give a divisor of {heads}."
        )
    if choice.pp > (most := (model.layers + 2) // 2):
        yield f"PP is {choice.pp} and the model has {model.layers} layers: give at most {most}."
    if choice.pp > 1 and model.tied:
        yield f"PP is {choice.pp} and the head is the embedding as well, at the other end: give PP=1."
    if seq_len > model.positions:
        yield (
            f"SEQ_LEN is {seq_len} and the model has {model.positions} positions: give at most "
            f"{model.positions}."
        )
    if not model.experts:
        if choice.ep > 1:
            yield f"EP is {choice.ep} and the model has no experts: give EP=1."
        return
    if model.experts % choice.ep:
        yield (
            f"EP is {choice.ep} and the model has {model.experts} experts: give a divisor of {model.experts}."
        )
    sharing = sharing_state(choice, nodes)
    parts = sharing // choice.ep
    ranks = sharing if choice.ep > 1 else nodes.ranks // (choice.pp * choice.tp)
    if ranks > model.experts and math.gcd(model.width, model.expert_width) % parts:
        yield (
            f"EP is {choice.ep}, so {parts} ranks share the matrices of an expert, {model.width} x "
            f"{model.expert_width}, and cannot cut them evenly: give a larger EP, or SHARD=node."
        )


def size_of(settings: Settings, weights: str | None) -> str:
    """Return SIZE, else that of the weights or the smallest published one; die on weights of another size."""
    sizes = MODELS[settings.model]
    alike = sizes_like(sizes, weights)
    size = settings.size or next(iter(alike), "")
    if size not in alike:
        others = (
            f"SIZE={' or '.join(alike)}"
            if alike
            else f"another MODEL: none of {', '.join(sizes)} is of this size"
        )
        die(f"the weights {weights} are not those of {settings.model}{size and f' {size}'}: give {others}.")
    return size


def check_weights(settings: Settings, weights: Path) -> None:
    """Die on weights of another size, or in a quantization that torchtitan does not read."""
    size_of(settings, str(weights))
    quantized = (config_of(weights).get("quantization_config") or {}).get("quant_method")
    if quantized and quantized != QUANTIZED.get(settings.model):
        die(
            f"the weights {weights} are quantized ({quantized}), which torchtitan does not read for "
            f"{settings.model}: give weights in bf16 as INIT_FROM."
        )


def check_vocabulary(tokens: int, vocabulary: int) -> None:
    """Die if a tokenizer has more tokens than the model."""
    if tokens > vocabulary:
        die(
            f"the tokenizer has {tokens} tokens and the model {vocabulary}: give at most {vocabulary} as "
            "VOCAB_SIZE, or the model's own TOKENIZER."
        )


def known_model(settings: Settings, weights: str | None = None) -> Model | None:
    """Return the size of the model, by SIZE or by the weights; None if neither tells it.

    Args:
        weights: folder of the weights to start from; None before they are downloaded.
    """
    if settings.config or (settings.init_from and not (settings.size or weights)):
        return None
    return MODELS[settings.model][size_of(settings, weights)]


def nodes_of_job(count: int) -> Nodes:
    """Return the nodes of a job by the variables of its partition; what these lack is 0."""
    memory, tflops, network = (
        float(os.environ.get(name) or 0)
        for name in ("ACCELERATOR_MEMORY_GIB", "ACCELERATOR_PEAK_TFLOPS", "NETWORK_GBPS")
    )
    return Nodes(
        count=count,
        gpus=ranks_of_node(),
        memory_gib=memory,
        name=os.environ.get("INSTANCE_TYPE", "this partition"),
        tflops=tflops,
        network_gbps=network,
    )


def training_of(settings: Settings) -> dict[str, Any]:
    """Return what else decides on memory, as named arguments of `choose`."""
    return {
        "seq_len": settings.seq_len,
        "lora": bool(settings.lora_rank),
        "compiled": settings.compile == "yes",
    }


def needing_less(settings: Settings, *, count: int, weights: str | None) -> str:
    """Return the settings that `fit` would choose on the same nodes if they had less memory.

    Args:
        count: number of nodes of the job.
        weights: folder of the weights to start from.
    """
    otherwise = "a smaller SIZE or SEQ_LEN, more nodes, or a family with more memory"
    model, choice = known_model(settings, weights), Choice(**settings.of_memory)  # type: ignore[arg-type]
    if not model:
        return f"BATCH_SIZE={choice.batch_size // 2}" if choice.batch_size > 1 else otherwise
    faults = partial(faults_of, model, seq_len=settings.seq_len, global_batch=settings.global_batch)
    nodes, training = nodes_of_job(count), training_of(settings)
    # Its own need, which the estimate leaves out in part, is then the memory that is not enough.
    nodes = dataclasses.replace(nodes, memory_gib=memory_gib(model, choice, nodes, **training))
    try:
        less, _ = choose(model, {}, nodes, faults=faults, **training)
    except DoesNotFitError:
        return otherwise
    given = " ".join(f"{n.upper()}={value}" for n, value in vars(less).items() if value != getattr(choice, n))
    return f"{given}, or {otherwise}" if given else otherwise


def saves_of(settings: Settings, *, count: int, weights: str | None = None) -> dict[str, float] | None:
    """Return the checkpoints of a run that `fit` has filled; None if the model's size is unknown.

    Args:
        count: number of nodes of the job.
        weights: folder of the weights to start from; None before they are downloaded.

    Returns:
        `bytes` of a checkpoint; `most` that exist at the same time; `every_s`, estimated seconds of training
        between two saves, 0 if the nodes' speed is unknown; `every_steps`, steps between two saves; `steps`
        of the run, 0 if it is given in epochs.
    """
    model, nodes, lora = known_model(settings, weights), nodes_of_job(count), bool(settings.lora_rank)
    if not model:
        return None
    tokens = settings.checkpoint_every * settings.global_batch * settings.seq_len
    per_s = nodes.ranks * nodes.tflops * 1e12 * SPEED
    return {
        "bytes": model.checkpoint_bytes(lora=lora),
        # The steps of an epoch are not known before the text is counted.
        "most": settings.keep_checkpoints + 1 if settings.epochs else settings.most_checkpoints,
        "every_s": tokens * model.flops(settings.seq_len, lora=lora) / per_s if per_s else 0.0,
        "every_steps": settings.checkpoint_every,
        "steps": 0 if settings.epochs else settings.max_steps,
    }


def fit(settings: Settings, *, count: int, weights: str | None = None) -> tuple[Settings, list[str]]:
    """Fill the settings that decide on memory, the size of the model, and the sequences of a step.

    Dies if the model cannot fit, or torchtitan cannot divide it.

    Args:
        count: number of nodes of the job.
        weights: folder of the weights to start from; None before they are downloaded.

    Returns:
        The settings, and a sentence for each that was chosen; none where the memory is unknown.
    """
    nodes = nodes_of_job(count)
    model, reasons = known_model(settings, weights), list[str]()
    if model and settings.trains_tokenizer:
        check_vocabulary(settings.vocab_size, model.vocabulary)

    faults = partial(faults_of, model, seq_len=settings.seq_len, global_batch=settings.global_batch)
    choice = Choice(**settings.of_memory)  # type: ignore[arg-type]
    if nodes.memory_gib and model and not settings.is_cpu:
        try:
            choice, reasons = choose(model, settings.of_memory, nodes, faults=faults, **training_of(settings))
        except DoesNotFitError as error:
            die(f"{settings.model} {settings.size or ''} does not fit: {error}")
    for fault in faults(choice, nodes):
        die(fault)
    sequences = settings.global_batch or micro_step(choice, nodes)
    size = size_of(settings, weights) if model else settings.size
    return dataclasses.replace(settings, **vars(choice), size=size, global_batch=sequences), reasons
