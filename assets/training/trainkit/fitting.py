"""Parallelism, checkpointing and batch that fit a model into the GPUs' memory. Needs no package.

An estimate. One run on a GPU was compared: titan's Llama 3 1B with 2 x 8192 tokens, without checkpointing,
took 45.4 GiB of an H100, and 43.1 are estimated. Sources: ZeRO (arXiv 1910.02054) for 16 bytes a
parameter of fp32 weights, gradients and Adam's moments; "Reducing activation recomputation" (arXiv
2205.05198) for 34 x width bytes a token and layer, without 5as/h, since FlexAttention stores no scores. With
SwiGLU that is 2 x (active parameters of a layer / width) + 10 x width, which for GPT is 34 x width. SELECTIVE
is that of torchtitan 0.3.0's Llama 3 8B over fake tensors, whose storages were counted: 66 kB a token and
layer with selective (115 kB with LoRA), 226 kB with none (not compiled), 8.7 kB with full; 13 bytes a logit.
It is within 11 % of torchtitan's own tables for Llama 3.1 8B and 70B
(benchmarks/llama3_h100_202412_torchtitan.md). No measurement was found for mixtures of experts; the copies of
tokens that they keep in addition are counted in torchtitan 0.3.0's moe.py, token_dispatcher.py and
activation_checkpoint.py, for tokens that the router spreads evenly.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from trainkit.sizes import Choice, Model, Nodes

GIB = 2**30
ERROR = 0.2
"""Bound of the estimate's error, of both signs."""
USABLE = 0.95
"""Part of a GPU's memory that allocations may have; the rest is the driver's, NCCL's and fragments'."""
TOKENS = 8192
"""Tokens of a rank and micro-step beyond which a larger batch makes GPUs hardly faster."""
PIPELINES = (2, 4, 8, 16)
"""Degrees of pipeline parallelism that are tried, with whole nodes as stages."""
MICRO_BATCHES = (4, 2, 1)
"""Sequences of a micro-step for each stage of a pipeline, which waits for 1/5, 1/3 or 1/2 of the time."""
LONG = 32768
"""Tokens of a sequence from which context parallelism is tried."""
SPEED = 0.4
"""Part of the GPUs' peak that training reaches (38 to 43 % for Llama 3 405B, arXiv 2407.21783)."""
BYTES_OF_STAGE = 6
"""Bytes of a parameter that a stage of a pipeline keeps gathered: bf16, and the gradient in fp32."""
LOSS_CHUNKS = 8
"""Parts in which torchtitan computes logits and loss."""
TP_FACTOR = 1.5
"""Activations with tensor parallelism over their share: by torchtitan's table of Llama 3.1 70B with TP 8."""
SELECTIVE, SELECTIVE_LORA = 0.45, 0.8
"""Part of a layer's activations that selective checkpointing keeps until the backward pass: every second
matrix product. With LoRA that is each weight's own, since one of its two small ones is between them."""
ROUTED, ROUTED_SELECTIVE = 3, 2
"""Copies of a token in bf16 that a layer keeps for each of its experts until the backward pass: the input of
the expert, and its output in fp32, by which the router's scores get their gradients; with selective
checkpointing what arrives from the two all-to-alls of expert parallelism."""
NOT_COMPILED = 1.5
"""Ratio of the activations of layers that are not compiled to compiled ones, which compute norms and
rotations again. Selective checkpointing does that, too."""


class DoesNotFitError(Exception):
    """A model that the GPUs cannot hold, with the least that could as the message."""


def memory_gib(
    model: Model,
    choice: Choice,
    nodes: Nodes,
    *,
    seq_len: int,
    lora: bool = False,
    compiled: bool = True,
    chunks: int = LOSS_CHUNKS,
) -> float:
    """Estimate the memory of a GPU in GiB."""
    shards = nodes.gpus * choice.pp if choice.shard == "node" else nodes.ranks
    state = model.parameters * (4 if lora else 16) / shards
    layer = (model.parameters - 2 * model.embedding) / model.layers
    layers = math.ceil(model.layers / choice.pp)
    # bf16 weights of the layer at work and of the next, and gradients of both; head and embedding likewise.
    gathered = 8 * layer / max(choice.tp, choice.ep) + 4 * 2 * model.embedding / choice.tp
    if lora:  # no gradients of these
        gathered /= 2
    tokens, under_way = choice.batch_size * seq_len / (choice.tp * choice.cp), 1
    if choice.pp > 1:
        # A stage gathers its weights, and divides their gradients in fp32, once for all sequences. It takes
        # one of these at a time, and the first stage has as many under way as there are stages.
        gathered += (2 if lora else BYTES_OF_STAGE) * layer * layers / max(choice.tp, choice.ep)
        tokens, under_way = tokens / choice.batch_size, choice.pp
    of_layer = tokens * (2 * model.active_of_layer / model.width + 10 * model.width)
    routed = tokens * 2 * model.width * model.experts_of_token
    whole = of_layer * (1 if compiled else NOT_COMPILED) + ROUTED * routed
    exchanged = ROUTED_SELECTIVE * routed if choice.ep > 1 else 0
    # full keeps the layer's input.
    kept = {
        "none": whole,
        "selective": (SELECTIVE_LORA if lora else SELECTIVE) * of_layer + exchanged,
        "full": 2 * model.width * tokens,
    }
    # bf16 and fp32 logits, and their gradients.
    logits = tokens / chunks * model.vocabulary * 12
    of_layers = layers * under_way * kept[choice.activation_checkpointing]
    of_tokens = (of_layers + max(whole, logits)) * (TP_FACTOR if choice.tp > 1 else 1)
    return (state + gathered + of_tokens) / GIB


def seconds(model: Model, choice: Choice, *, nodes: Nodes, seq_len: int, lora: bool = False) -> float:
    """Estimate the seconds of one GPU that a sequence takes, with what FSDP sends between nodes meanwhile.

    FSDP gathers the bf16 weights of each micro-step twice and sends their gradients in fp32; a stage of a
    pipeline gathers its own once. Stages wait for each other at both ends of a micro-step.
    """
    ranks = choice.pp * choice.tp * choice.cp
    flops = model.flops(seq_len, lora=lora)
    if choice.activation_checkpointing == "full":  # the forward pass again
        flops += model.flops(seq_len, lora=False) / 3
    computing = choice.batch_size * seq_len * flops / ranks / (nodes.tflops * 1e12 * SPEED)
    sent = 0.0
    if choice.shard == "all" and nodes.count > choice.pp:
        each = (2 if choice.pp > 1 else 4) + (0 if lora else 4)
        # All weights of the stage come into each node once, and NVLink spreads them there.
        sent = each * model.parameters / choice.pp / (nodes.network_gbps / 8 * 1e9)
    waiting = computing * (choice.pp - 1) / choice.batch_size
    return (max(computing, sent) + waiting) * ranks / choice.batch_size


def choose(
    model: Model,
    asked: Mapping[str, int | str],
    nodes: Nodes,
    *,
    faults: Callable[[Choice, Nodes], Iterator[str]],
    seq_len: int,
    lora: bool = False,
    compiled: bool = True,
) -> tuple[Choice, list[str]]:
    """Choose what the user did not ask for: of all that fits, what communicates and computes again least.

    Args:
        asked: the user's own settings, by the fields of Choice.
        faults: yields the reasons why the trainer cannot train with such settings on such nodes.

    Returns:
        The settings, and a sentence for each with its reason; if the trainer allows none, what was asked.

    Raises:
        DoesNotFitError: nothing fits, even if the estimate is too high by all of its error.
    """
    size_of = partial(memory_gib, model, seq_len=seq_len, lora=lora, compiled=compiled)
    seconds_of = None
    if nodes.tflops and nodes.network_gbps:
        seconds_of = partial(seconds, model, nodes=nodes, seq_len=seq_len, lora=lora)

    def allowed(given: Mapping[str, int | str], nodes: Nodes) -> Iterator[Choice]:
        return candidates(model, given, nodes, faults=faults, seq_len=seq_len)

    def find(given: Mapping[str, int | str]) -> tuple[Choice, float] | None:
        return fastest(list(allowed(given, nodes)), nodes, size_of, seconds_of)

    if not (found := find(asked)):
        return Choice(**asked), []  # type: ignore[arg-type]
    choice, size = found
    remedy = own_settings(asked, nodes, find) if size > USABLE * nodes.memory_gib else ""
    if size * (1 - ERROR) > USABLE * nodes.memory_gib:
        raise DoesNotFitError(
            f"it needs about {size:,.0f} GiB (+-{ERROR:.0%}) of each GPU on {nodes.count} node(s), and "
            f"a GPU of {nodes.name} has {nodes.memory_gib:g}: "
            f"{remedy or smallest(nodes, partial(allowed, asked), size_of)}"
        )
    lines = reasons(choice, asked, model, nodes, seq_len=seq_len)
    return choice, [*lines, memory_line(size, nodes, remedy)]


def memory_line(size: float, nodes: Nodes, remedy: str) -> str:
    """Say how much of a GPU's memory the choice needs, and that it may be more than there is.

    Args:
        size: the estimate in GiB.
        remedy: what to give instead, if a setting of the user's own needs that much.
    """
    line = f"memory: about {size:,.1f} of {nodes.memory_gib:g} GiB of a GPU (estimate +-{ERROR:.0%})"
    if size <= USABLE * nodes.memory_gib:
        return line
    return (
        f"{line}, of which {USABLE * nodes.memory_gib:g} are usable: it does not fit, unless the estimate is "
        f"too high{remedy and f'. To be sure, {remedy}'}"
    )


def fastest(
    every: Sequence[Choice],
    nodes: Nodes,
    size_of: Callable[[Choice, Nodes], float],
    seconds_of: Callable[[Choice], float] | None,
) -> tuple[Choice, float] | None:
    """Return the first choice that surely fits, else the smallest, and its GiB; None without any choice.

    Args:
        seconds_of: estimates the time; the first of another PP is taken if it is surely faster.
    """
    sized = [(each, size_of(each, nodes)) for each in every]
    surely = [each for each in sized if each[1] * (1 + ERROR) <= USABLE * nodes.memory_gib]
    if not (surely and seconds_of):
        return next(iter(surely), min(sized, key=lambda each: each[1], default=None))
    first_of = {each[0].pp: each for each in reversed(surely)}
    best = min(first_of.values(), key=lambda each: seconds_of(each[0]))
    return best if seconds_of(best[0]) * (1 + ERROR) < seconds_of(surely[0][0]) else surely[0]


def own_settings(
    asked: Mapping[str, int | str],
    nodes: Nodes,
    find: Callable[[Mapping[str, int | str]], tuple[Choice, float] | None],
) -> str:
    """Name the user's own settings with whose other values the model fits; empty if none helps.

    Args:
        find: returns the fastest choice with other settings of the user, and its GiB.
    """
    batch = int(asked.get("batch_size", 1))
    smaller = [{**asked, "batch_size": batch >> n} for n in range(1, batch.bit_length())]
    without = [{name: asked[name] for name in asked if name != each} for each in asked]
    for given in [*smaller, *without, {}]:
        found = find(given)
        if found and found[1] <= USABLE * nodes.memory_gib:
            other = {name: value for name, value in vars(found[0]).items() if value != asked.get(name, value)}
            values = " ".join(f"{name.upper()}={value}" for name, value in other.items())
            return f"give {values}, or leave {'it' if len(other) == 1 else 'them'} out."
    return ""


def smallest(
    nodes: Nodes,
    allowed: Callable[[Nodes], Iterator[Choice]],
    size_of: Callable[[Choice, Nodes], float],
) -> str:
    """Name the fewest nodes of this kind that would hold the model, up to 512.

    Args:
        allowed: yields the settings that such nodes allow.
        size_of: estimates the memory of a GPU in GiB.
    """
    for count in range(nodes.count + 1, 513):
        more = dataclasses.replace(nodes, count=count)
        if any(size_of(each, more) <= USABLE * nodes.memory_gib for each in allowed(more)):
            return f"take {count} nodes or more, a smaller SIZE, or a family with more memory."
    return "no number of these nodes holds it: take a smaller SIZE or SEQ_LEN, or a family with more memory."


def candidates(
    model: Model,
    asked: Mapping[str, int | str],
    nodes: Nodes,
    *,
    faults: Callable[[Choice, Nodes], Iterator[str]],
    seq_len: int,
) -> Iterator[Choice]:
    """Yield all settings that the trainer allows and the user's own settings leave, the fastest first.

    Pipelines come last: they need as much memory. choose() takes one where FSDP waits for the network.
    """
    powers = [2**n for n in range(17)]
    pipelines = [asked["pp"]] if "pp" in asked else [1, *(n for n in PIPELINES if nodes.count % n == 0)]
    whole = [n for n in reversed(powers) if n * seq_len <= max(TOKENS, seq_len)]
    for pp in map(int, pipelines):
        # The experts on the GPUs of a node, or else, without a pipeline, on the GPUs of all nodes.
        sharing = (nodes.gpus, nodes.ranks) if pp == 1 else (nodes.gpus,)
        options: dict[str, list[int | str]] = {
            "ep": [math.gcd(model.experts or 1, n) for n in sharing],
            "tp": [n for n in powers if n <= nodes.gpus],
            "cp": [n for n in powers if n <= nodes.ranks] if seq_len > LONG else [1],
            "activation_checkpointing": ["none", "selective", "full"],
            "batch_size": whole if pp == 1 else [n * pp for n in MICRO_BATCHES],
            "shard": ["node", "all"] if nodes.count > 1 else ["all"],
        }
        values = [[asked[name]] if name in asked else options[name] for name in options]
        for each in itertools.product(*values):
            choice = Choice(pp=pp, **dict(zip(options, each, strict=True)))  # type: ignore[arg-type]
            if not any(faults(choice, nodes)):
                yield choice


def reasons(
    choice: Choice,
    asked: Mapping[str, int | str],
    model: Model,
    nodes: Nodes,
    *,
    seq_len: int,
) -> list[str]:
    """Return a sentence for each setting that was chosen."""
    why = {
        "pp": "FSDP alone would wait for the network" if choice.pp > 1 else "a pipeline gains nothing",
        "tp": "the least tensor parallelism that fits",
        "cp": f"sequences of {seq_len} tokens" if choice.cp > 1 else f"sequences of at most {LONG} tokens",
        "ep": f"{model.experts} experts over {choice.ep} GPUs" if model.experts else "no experts",
        "shard": (
            f"a node's {nodes.gpus} GPUs hold the whole state (HSDP)"
            if choice.shard == "node"
            else f"the state is divided by all {nodes.ranks} GPUs (FSDP)"
        ),
        "activation_checkpointing": "the least that is computed again and fits",
        "batch_size": (
            f"{choice.batch_size // choice.pp} sequences for each stage of the pipeline"
            if choice.pp > 1
            else f"{choice.batch_size * seq_len} tokens of a micro-step; {TOKENS} keep a GPU busy"
        ),
    }
    return [f"{name.upper()}={getattr(choice, name)}: {why[name]}" for name in why if name not in asked]
