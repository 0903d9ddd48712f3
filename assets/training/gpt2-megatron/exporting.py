"""Export of a checkpoint to a GPT-2 that transformers loads: the pieces are merged by Megatron's names.

Core orders the rows of queries, keys and values by head, transformers has all queries first. The matrices of
transformers' GPT-2 are also transposed.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokens import bpe_of_shards
from trainkit.data.shards import ShardError
from trainkit.run.checkpoints import loading

LAYER = re.compile(r"decoder\.layers\.(\d+)\.(.+)\.(weight|bias)")
# Core's names in a layer. With Transformer Engine, a layer norm is part of the matrix after it.
NAMES = {
    "input_layernorm": "ln_1",
    "self_attention.linear_qkv.layer_norm": "ln_1",
    "self_attention.linear_qkv": "attn.c_attn",
    "self_attention.linear_proj": "attn.c_proj",
    "pre_mlp_layernorm": "ln_2",
    "mlp.linear_fc1.layer_norm": "ln_2",
    "mlp.linear_fc1": "mlp.c_fc",
    "mlp.linear_fc2": "mlp.c_proj",
}
OTHERS = {
    "embedding.word_embeddings.weight": "wte.weight",
    "embedding.position_embeddings.weight": "wpe.weight",
    "decoder.final_layernorm.weight": "ln_f.weight",
    "decoder.final_layernorm.bias": "ln_f.bias",
}
# Tensors that are divided among tensor parallel ranks, by rows or columns.
ROWS = (
    "word_embeddings.weight",
    "linear_qkv.weight",
    "linear_qkv.bias",
    "linear_fc1.weight",
    "linear_fc1.bias",
)
COLUMNS = ("linear_proj.weight", "linear_fc2.weight")

State = Mapping[str, torch.Tensor]


def export(checkpoint: Path, to: Path, *, shards: Path) -> None:
    """Write weights, config.json and tokenizer.json into a folder, whole or not at all.

    Args:
        checkpoint: folder of one of this workload's checkpoints.
        shards: folder of the run's data, which has its tokenizer.
    """
    with loading(checkpoint):
        noted = json.loads((checkpoint / "progress.json").read_text(encoding="utf-8"))
        weights = merged(noted, lambda tensor, stage: read_piece(checkpoint, tensor, stage))
    written = to.with_name(f".{to.name}.partial")
    shutil.rmtree(written, ignore_errors=True)
    written.mkdir(parents=True)
    save_file(weights, written / "model.safetensors", metadata={"format": "pt"})
    config = config_of(noted, end_of_text=write_tokenizer(shards, written))
    config["dtype"] = str(weights["transformer.wte.weight"].dtype).removeprefix("torch.")
    (written / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    written.rename(to)
    print(f"export: {to}")


def write_tokenizer(shards: Path, folder: Path) -> int:
    """Write tokenizer.json; return the id of the end of text, 0 if the vocabulary no longer exists."""
    from tokenizers import decoders  # noqa: PLC0415

    bpe = bpe_of_shards(shards)
    try:
        tokenizer = bpe.open()
    except ShardError as error:
        print(f"export: no tokenizer.json: {error}")
        return 0
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))
    return bpe.end_of_text


def read_piece(checkpoint: Path, tensor: int, stage: int) -> State:
    """Read the model of the piece of a tensor parallel rank and a pipeline stage."""
    file = checkpoint / f"tensor-{tensor:02d}-pipeline-{stage:02d}.pt"
    # The optimizer's state contains other objects than tensors. Mapping the file leaves it unread.
    loaded = torch.load(file, map_location="cpu", weights_only=False, mmap=True)
    return {name: each for name, each in loaded["model"].items() if isinstance(each, torch.Tensor)}


def merged(noted: Mapping[str, Any], read: Callable[[int, int], State]) -> dict[str, torch.Tensor]:
    """Return all weights by transformers' names.

    Args:
        noted: progress.json of the checkpoint.
        read: reads the piece of a tensor parallel rank and a pipeline stage.
    """
    found: dict[str, torch.Tensor] = {}
    stages = noted["pipeline_parallel"]
    for stage in range(stages):
        pieces = [read(tensor, stage) for tensor in range(noted["tensor_parallel"])]
        first_layer = stage * (noted["gpt2_layers"] // stages)
        for name in pieces[0]:
            if name.endswith("_extra_state") or name.startswith("output_layer."):
                continue  # the output layer's matrix is the embedding's
            whole = joined(name, [piece[name] for piece in pieces])
            found |= renamed(name, whole, first_layer, heads=noted["gpt2_heads"])
    found["transformer.wte.weight"] = found["transformer.wte.weight"][: noted["vocab_size"]]
    return {name: each.contiguous() for name, each in found.items()}


def joined(name: str, parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """Join the parts of the tensor parallel ranks."""
    dimension = 0 if name.endswith(ROWS) else 1 if name.endswith(COLUMNS) else None
    return parts[0] if dimension is None else torch.cat(list(parts), dim=dimension)


def renamed(name: str, whole: torch.Tensor, first_layer: int, *, heads: int) -> dict[str, torch.Tensor]:
    """Return a tensor as transformers names and lays it out. Raises KeyError for an unknown name."""
    if name in OTHERS:
        return {f"transformer.{OTHERS[name]}": whole}
    # layer_norm_weight of Transformer Engine is a weight of its layer norm.
    match = LAYER.fullmatch(name.replace("layer_norm_", "layer_norm."))
    if not match:
        raise KeyError(name)
    theirs = NAMES[match[2]]
    if theirs == "attn.c_attn":
        whole = whole.unflatten(0, (heads, 3, -1)).transpose(0, 1).flatten(0, 2)
    if whole.dim() > 1:
        whole = whole.T
    return {f"transformer.h.{first_layer + int(match[1])}.{theirs}.{match[3]}": whole}


def config_of(noted: Mapping[str, Any], *, end_of_text: int) -> dict[str, Any]:
    """Return config.json."""
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": noted["vocab_size"],
        "n_positions": noted["gpt2_context"],
        "n_embd": noted["gpt2_width"],
        "n_layer": noted["gpt2_layers"],
        "n_head": noted["gpt2_heads"],
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
        "bos_token_id": end_of_text,
        "eos_token_id": end_of_text,
    }
