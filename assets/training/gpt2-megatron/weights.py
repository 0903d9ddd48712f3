"""Conversion of NVIDIA's published GPT-2 345M (2019) into the parameters of Megatron's core.

Its names and its order of queries, keys and values changed since: in a checkpoint without
`checkpoint_version` (0) the rows of query_key_value are (3, heads, width of a head), in core (heads, 3,
width of a head). The conversion of transformers (models/megatron_gpt2) reads that layout. It was not tried
with the published file itself.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import torch
from megatron.core import parallel_state
from settings import Settings
from trainkit.run.run import die

# Core's names with Transformer Engine, where a layer norm is part of the matrix behind it, and without.
NAMES = {
    "embedding.word_embeddings.weight": "embedding.word_embeddings.weight",
    "embedding.position_embeddings.weight": "embedding.position_embeddings.weight",
    "output_layer.weight": "embedding.word_embeddings.weight",
    "decoder.final_layernorm": "transformer.final_layernorm",
    "input_layernorm": "input_layernorm",
    "self_attention.linear_qkv.layer_norm": "input_layernorm",
    "self_attention.linear_qkv": "attention.query_key_value",
    "self_attention.linear_proj": "attention.dense",
    "pre_mlp_layernorm": "post_attention_layernorm",
    "mlp.linear_fc1.layer_norm": "post_attention_layernorm",
    "mlp.linear_fc1": "mlp.dense_h_to_4h",
    "mlp.linear_fc2": "mlp.dense_4h_to_h",
}
LAYER = re.compile(r"decoder\.layers\.(\d+)\.")


def load_weights(model: Any, file: Path, *, settings: Settings) -> None:
    """Load this rank's part of the file's weights into its model; die if they do not fit this model."""
    published = read(file)
    first = _first_layer(settings)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            whole = published.get(old_name(name, first))
            if whole is None:
                die(f"{file} has no {old_name(name, first)}: it is not of the format of NVIDIA's GPT-2 345M.")
            if "linear_qkv" in name and "layer_norm" not in name:
                whole = by_head(whole, settings.gpt2_heads)
            if "word_embeddings" in name or name == "output_layer.weight":
                whole = padded(whole, settings.padded_vocab_size)
            own = part(whole, parameter)
            if own.shape != parameter.shape:
                die(
                    f"{file} does not fit: {name} is {tuple(parameter.shape)} and the file has "
                    f"{tuple(own.shape)}: "
                    "the 345M model has GPT2_LAYERS=24, GPT2_HEADS=16, GPT2_WIDTH=1024, GPT2_CONTEXT=1024."
                )
            parameter.copy_(own)


def read(file: Path) -> dict[str, torch.Tensor]:
    """Read the tensors of the file, by their names with dots; die if it is another version of the format."""
    # In addition to tensors it contains the arguments of the run that made it.
    with torch.serialization.safe_globals([argparse.Namespace]):
        found = torch.load(file, map_location="cpu", weights_only=True)
    if found.get("checkpoint_version", 0) != 0:
        version = found["checkpoint_version"]
        die(f"{file} has version {version}, and only version 0 is supported: use NVIDIA's file of 2019.")
    return flat(found["model"]["language_model"])


def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, torch.Tensor]:
    """Flatten nested dictionaries into one."""
    found: dict[str, torch.Tensor] = {}
    for name, value in tree.items():
        if isinstance(value, torch.Tensor):
            found[prefix + name] = value
        elif isinstance(value, dict):
            found |= flat(value, f"{prefix}{name}.")
    return found


def old_name(name: str, first_layer: int) -> str:
    """Return the old format's name of a parameter of the pipeline stage that begins with `first_layer`."""
    if name in NAMES:
        return NAMES[name]
    layer, rest = "", name
    if match := LAYER.match(name):
        layer, rest = f"transformer.layers.{first_layer + int(match[1])}.", name[match.end() :]
    stem, kind = re.fullmatch(r"(.+?)[._](weight|bias)", rest).groups()  # type: ignore[union-attr]
    return f"{layer}{NAMES.get(stem, stem)}.{kind}"


def by_head(rows: torch.Tensor, heads: int) -> torch.Tensor:
    """Reorder rows from (3, heads, width of a head) to core's order."""
    return rows.view(3, heads, -1, *rows.shape[1:]).transpose(0, 1).reshape(rows.shape)


def padded(rows: torch.Tensor, count: int) -> torch.Tensor:
    """Cut or pad a matrix with zeros to a number of rows; no token uses the rows of the padding."""
    missing = max(0, count - len(rows))
    return torch.cat([rows, rows.new_zeros(missing, rows.shape[1])])[:count]


def part(whole: torch.Tensor, parameter: Any) -> torch.Tensor:
    """Return this tensor parallel rank's part of a tensor."""
    if not getattr(parameter, "tensor_model_parallel", False):
        return whole
    size = parallel_state.get_tensor_model_parallel_world_size()
    pieces = whole.chunk(size, dim=parameter.partition_dim)
    return pieces[parallel_state.get_tensor_model_parallel_rank()]


def _first_layer(settings: Settings) -> int:
    stage = parallel_state.get_pipeline_model_parallel_rank()
    return int(stage) * (settings.gpt2_layers // settings.pipeline_parallel)
