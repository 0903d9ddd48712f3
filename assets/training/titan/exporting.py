"""Weights of a run in Hugging Face's format: a folder that is written whole or not at all."""

from __future__ import annotations

import datetime
import json
import shutil
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from config import LLAMA_ROPE
from fields import Settings
from torchtitan.components.checkpointer.base import MODEL
from torchtitan.components.checkpointer.dcp import AsyncMode
from torchtitan.protocols.model_spec import ModelSpec
from torchtitan.trainer import Trainer
from trainkit.data.hf_weights import config_of
from trainkit.run import checkpoints

FOLDER = "export"
NO_CONFIG = (
    "export: the weights will have no config.json, without which transformers does not load them: it is "
    "written for llama3, dense qwen3 and INIT_FROM only. EXPORT=no skips an export."
)
# Files beside the weights that a program needs to load them.
TOKENIZER_FILES = ("tokenizer*", "special_tokens_map.json", "chat_template*", "generation_config.json")
FILE_BYTES = 5 * 10**9
"""Most bytes of a file of weights, unless one tensor is larger, as transformers writes them."""
ADAPTERS = (".lora_a.", ".lora_b.")


def export(
    trainer: Trainer, to: Path, settings: Settings, *, tokenizer: Path, config: dict[str, Any]
) -> None:
    """Write the weights into the folder `to`, in bf16 or fp32; all ranks call it.

    Args:
        tokenizer: folder of the tokenizer's files.
        config: config.json, from hf_config; empty for none.
    """
    dtype = torch.bfloat16 if settings.mixed_precision == "bf16" else torch.float32
    written = to.with_name(f".{to.name}.partial")
    if is_first := dist.get_rank() == 0:
        shutil.rmtree(written, ignore_errors=True)
        written.mkdir(parents=True)
    dist.barrier()
    merge_lora(trainer.model_parts)
    states = {
        name: value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value
        for name, value in trainer.checkpointer.states[MODEL].state_dict().items()
        if not any(adapter in name for adapter in ADAPTERS)
    }
    adapter = trainer.checkpointer.sd_adapter
    adapter.fqn_to_index_mapping = files_of(adapter.to_hf(states))
    trainer.checkpointer.dcp_save(states, str(written), AsyncMode.DISABLED, to_hf=True)
    dist.barrier()
    if not is_first:
        return
    shutil.rmtree(written / "sharded", ignore_errors=True)
    for pattern in TOKENIZER_FILES:
        for file in tokenizer.glob(pattern):
            shutil.copyfile(file, written / file.name)
    if config:
        config |= dict.fromkeys(("dtype", "torch_dtype"), str(dtype).removeprefix("torch."))
        (written / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    if to.exists():
        kept = to.with_name(f"{to.name}-until-{datetime.datetime.now():%Y%m%d-%H%M%S}")
        print(f"export: {to} existed, and is {to.rename(kept)} now")
    written.rename(to)
    print(f"export: {to}")


def files_of(tensors: dict[str, torch.Tensor]) -> dict[str, int]:
    """Return the number of the file of each tensor of all ranks, from 1; the ranks share the work by file.

    Without it, one rank would write all weights into one file, or torchtitan a quantized INIT_FROM's weights
    into files that have no place for them.
    """
    parts: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(
        parts, {name: each.numel() * each.element_size() for name, each in tensors.items()}
    )
    sizes, files, number, filled = {k: v for part in parts for k, v in part.items()}, dict[str, int](), 1, 0
    for name in sorted(sizes):
        if filled and filled + sizes[name] > FILE_BYTES:
            number, filled = number + 1, 0
        filled += sizes[name]
        files[name] = number
    return files


def load_model(trainer: Trainer, checkpoint: Path) -> None:
    """Load the model of a checkpoint, whatever the number of ranks that wrote it."""
    with checkpoints.loading(checkpoint):
        trainer.checkpointer.dcp_load(
            trainer.checkpointer.states[MODEL].state_dict(),
            str(checkpoint),
            from_hf=False,
            from_quantized=False,
        )


def merge_lora(parts: list[torch.nn.Module]) -> None:
    """Add LoRA's matrices to the weights that they belong to, and make them zero."""
    modules: list[Any] = [each for part in parts for each in part.modules() if hasattr(each, "_lora_scaling")]
    with torch.no_grad():
        for module in modules:
            product = (module.lora_b.weight @ module.lora_a.weight) * module._lora_scaling
            if hasattr(product, "redistribute"):
                product = product.redistribute(placements=module.weight.placements)
            module.weight.add_(product)
            module.lora_b.weight.zero_()


def hf_config(spec: ModelSpec, weights: str | None) -> dict[str, Any]:
    """Return config.json as transformers reads it, of the weights a run begins with or of the model.

    Call it before the trainer sets the model's length to its sequences' length. It is empty for all but a
    llama3 or a dense qwen3: transformers has no model with the routers of others, which a bias balances.
    """
    if weights:
        return {k: v for k, v in config_of(Path(weights)).items() if k != "quantization_config"}
    if spec.name not in {"llama3", "qwen3"}:
        return {}
    model: Any = spec.model
    layer = model.layers[0]
    if getattr(layer, "moe", None):
        return {}
    attention, rope = layer.attention, layer.attention.rope
    config = {
        "architectures": ["LlamaForCausalLM" if spec.name == "llama3" else "Qwen3ForCausalLM"],
        "model_type": spec.name.removesuffix("3") if spec.name == "llama3" else spec.name,
        "hidden_size": model.dim,
        "num_hidden_layers": len(model.layers),
        "num_attention_heads": attention.n_heads,
        "num_key_value_heads": attention.n_kv_heads or attention.n_heads,
        "head_dim": attention.qkv_linear.head_dim,
        "intermediate_size": layer.feed_forward.w1.out_features,
        "vocab_size": model.vocab_size,
        "rms_norm_eps": model.norm.eps,
        "rope_theta": rope.theta,
        "max_position_embeddings": rope.max_seq_len,
        "tie_word_embeddings": model.enable_weight_tying,
    }
    if rope.scaling == "llama":
        scaling = {"rope_type": "llama3", "factor": rope.scaling_factor}
        config["rope_scaling"] = scaling | {name: getattr(rope, name) for name in LLAMA_ROPE}
    return config
