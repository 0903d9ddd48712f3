"""Sizes of models and of a job's nodes, and the settings by which one is divided over the other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainkit.data.hf_weights import config_of
from trainkit.run.mfu import with_frozen_weights

WEIGHT_BYTES = 4
"""Bytes of a parameter in fp32, in which weights and the optimizer's state are kept."""
ADAM_MOMENTS = 2
"""Tensors of AdamW for each parameter that is trained, in the parameter's size."""


@dataclass(frozen=True)
class Model:
    """Size of a model: an entry of models.json."""

    parameters: int
    layers: int
    width: int
    heads: int
    kv_heads: int
    vocabulary: int
    positions: int
    """Most tokens of a sequence."""
    experts: int
    """Routed experts of a layer; 0 for a dense model."""
    experts_of_token: int
    expert_width: int
    flops_per_token: int
    flops_per_token_and_position: int
    tied: bool = False
    """True if the head is the embedding as well."""

    @property
    def embedding(self) -> int:
        """Parameters of the embedding, and of the head."""
        return self.vocabulary * self.width

    @property
    def active_of_layer(self) -> float:
        """Parameters of a layer that a token passes."""
        return (self.flops_per_token / 6 - self.embedding) / self.layers

    def flops(self, seq_len: int, *, lora: bool) -> float:
        """Return the floating point operations of a token, forward and backward."""
        attention = seq_len * self.flops_per_token_and_position
        whole = self.flops_per_token + attention
        return with_frozen_weights(whole, attention) if lora else whole

    def checkpoint_bytes(self, *, lora: bool) -> int:
        """Return the size of a checkpoint: weights, and the moments of those trained, without LoRA's own."""
        return self.parameters * WEIGHT_BYTES * (1 if lora else 1 + ADAM_MOMENTS)


@dataclass(frozen=True)
class Nodes:
    """GPUs of a job."""

    count: int
    gpus: int
    memory_gib: float
    name: str = "this partition"
    tflops: float = 0.0
    """Peak of a GPU in bf16; 0 if it is unknown."""
    network_gbps: float = 0.0
    """Network of a node in Gbit/s; 0 if it is unknown."""

    @property
    def ranks(self) -> int:
        """Number of all GPUs."""
        return self.count * self.gpus


@dataclass(frozen=True)
class Choice:
    """Settings that decide on memory, by the names of the fields of Settings."""

    pp: int = 1
    tp: int = 1
    cp: int = 1
    ep: int = 1
    shard: str = "all"
    activation_checkpointing: str = "selective"
    batch_size: int = 1


def read_models(file: Path) -> dict[str, dict[str, Model]]:
    """Read the sizes of all models of a table, a JSON file: the published ones before those for tests."""
    found = json.loads(file.read_text(encoding="utf-8"))["models"]
    return {
        name: {size: Model(**sizes[size]) for size in sorted(sizes, key=lambda size: "debugmodel" in size)}
        for name, sizes in found.items()
    }


def sizes_like(sizes: Mapping[str, Model], weights: str | None) -> list[str]:
    """List the sizes with the width, layers and vocabulary of the weights in a folder; all without one."""
    if not weights:
        return list(sizes)
    found = config_of(Path(weights))
    published = tuple(found.get(key) for key in ("hidden_size", "num_hidden_layers", "vocab_size"))
    return [name for name, each in sizes.items() if (each.width, each.layers, each.vocabulary) == published]
