"""Settings as a torchtitan Trainer.Config: its model by name, its options from ours, the cluster's parts."""

from __future__ import annotations

import dataclasses
import importlib
from pathlib import Path
from typing import Any

import tyro
from batches import loader_of, validation_of
from corrections import GptOssAdapter
from fields import Settings
from nodes import check_vocabulary, size_of
from profiling import window
from rows import Rows
from saving import Checkpoints
from torchtitan.components.lora import LoRAConverter
from torchtitan.components.loss import ChunkedLossWrapper, CrossEntropyLoss
from torchtitan.components.optimizer import LRSchedulersContainer, default_adamw
from torchtitan.components.quantization import Float8LinearConverter, MXFP8LinearConverter
from torchtitan.config import CompileConfig
from torchtitan.config.manager import custom_registry
from torchtitan.distributed.activation_checkpoint import FullAC, SelectiveAC
from torchtitan.models.common.config_utils import decoder_vocab_size
from torchtitan.models.common.decoder import Decoder
from torchtitan.models.common.linear import Linear
from torchtitan.models.gpt_oss.state_dict_adapter import GptOssStateDictAdapter
from torchtitan.protocols.model_spec import ModelSpec
from torchtitan.trainer import Trainer
from trainkit.data.hf_weights import config_of
from trainkit.run import process_group
from trainkit.run.run import Run, die
from trainkit.run.settings import ranks_of_node

NOT_IN_FLOAT8 = ["lm_head", "router.gate"]
"""Modules that torchtitan's own recipes keep in bf16: the head, and the choice of experts."""
NOT_IN_LORA = {"gate", "wq_a", "wkv_a"}
"""Modules whose weights torchtitan replicates over the ranks of TP: the choice of experts, and the narrowing
matrices of DeepSeek's attention. Its LoRA takes only what is divided by rows or columns (components/lora.py).
"""

LLAMA_ROPE = ("low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
"""Numbers of Llama's rotary embedding that torchtitan and transformers name alike."""


def model_of(settings: Settings, weights: Path | None) -> ModelSpec:
    """Return torchtitan's description of the model, with LoRA and float8 if they are asked for."""
    package = importlib.import_module(f"torchtitan.models.{settings.model}")
    size = size_of(settings, str(weights) if weights else None)
    converters: list[Any] = []
    plain = package.model_registry(size, attn_backend="flex").model
    compiled = settings.compile == "yes"
    if settings.float8 == "yes":
        kept = NOT_IN_FLOAT8
        converters.append(Float8LinearConverter.Config(filter_fqns=kept, model_compile_enabled=compiled))
    if settings.float8 == "mx":
        names = [
            name for name, *_ in plain.traverse(Linear.Config) if not name.endswith(tuple(NOT_IN_FLOAT8))
        ]
        converters.append(MXFP8LinearConverter.Config(fqns=names, model_compile_enabled=compiled))
    if settings.lora_rank:
        converters.append(
            LoRAConverter.Config(
                rank=settings.lora_rank, alpha=2.0 * settings.lora_rank, target_modules=lora_targets(plain)
            )
        )
    spec: ModelSpec = package.model_registry(size, attn_backend="flex", converters=converters or None)
    if weights:
        compute_as(config_of(weights), spec.model)
    return spec


def compute_as(published: dict[str, Any], model: Decoder.Config) -> None:
    """Give a model the rotary embedding and routers of published weights, whose config.json an export gets.

    torchtitan has one embedding for each size, as in Llama 3.1 and Qwen3. Llama 3.2 of the same sizes has
    another factor, and Llama 3 none. It balances experts by a bias that each step moves. Of published models,
    only DeepSeek V3 and Kimi K2 have one: exports of others would choose other experts than their training.
    """
    published = published.get("text_config", published)
    # transformers 5 writes it under the first name, older ones under the others.
    found = published.get("rope_parameters") or published.get("rope_scaling") or {}
    changes: dict[str, Any] = {}
    if theta := found.get("rope_theta") or published.get("rope_theta"):
        changes["theta"] = float(theta)
    if is_llama := found.get("rope_type", "default") == "llama3":
        changes |= {"scaling": "llama", "scaling_factor": found["factor"]}
        changes |= {name: found[name] for name in LLAMA_ROPE}
    has_bias = published.get("model_type") == "deepseek_v3" or published.get("topk_method") == "noaux_tc"
    for layer in model.layers:
        # Not every layer of a recipe has attention.
        if rope := getattr(layer.attention, "rope", None):
            unscaled = {"scaling": "none"} if rope.scaling == "llama" and not is_llama else {}
            layer.attention.rope = dataclasses.replace(rope, **unscaled, **changes)
        if getattr(layer, "moe", None) and not has_bias:
            layer.moe.load_balance_coeff = None


def lora_targets(model: Decoder.Config) -> list[str]:
    """List the names of the matrices that LoRA extends: all that torchtitan can, in layers and head.

    A head that is the embedding as well is left out: merged into it, LoRA's product would change both.
    """
    names = {name.rpartition(".")[2] for name, *_ in model.traverse(Linear.Config)} - NOT_IN_LORA
    return sorted(names - {"lm_head"} if model.enable_weight_tying else names)


def base_of(settings: Settings, weights: Path | None) -> Trainer.Config:
    """Return the user's own config, or one of the model; dies if there is no such function."""
    if settings.config:
        package, _, function = settings.config.partition(":")
        try:
            config = getattr(importlib.import_module(package), function)()
        except (ImportError, AttributeError) as error:
            if isinstance(error, ModuleNotFoundError) and error.name not in package.split("."):
                lacking = str(error.name)
                die(
                    f"CONFIG={settings.config} imports the Python module {lacking}, which titan's "
                    "environment lacks: add its package to titan/requirements.txt, and type make lock."
                )
            die(
                f"CONFIG={settings.config} cannot be imported ({error}): give PACKAGE:FUNCTION of a "
                "module of torchtitan, or of your own with its folder in PYTHONPATH."
            )
        if not isinstance(config, Trainer.Config):
            die(
                f"CONFIG={settings.config} returned {type(config).__name__}: give a function that returns a "
                "Trainer.Config."
            )
        if weights:
            compute_as(config_of(weights), config.model_spec.model)
        return config
    model = model_of(settings, weights)
    return Trainer.Config(
        model_spec=model,
        loss=ChunkedLossWrapper.Config(
            loss_fn=CrossEntropyLoss.Config(global_vocab_size=decoder_vocab_size(model))
        ),
        optimizer=default_adamw(lr=settings.learning_rate, weight_decay=settings.weight_decay),
        lr_scheduler=LRSchedulersContainer.Config(
            warmup_steps=settings.warmup_steps, decay_type="cosine", min_lr_factor=0.1
        ),
        activation_checkpoint={"full": FullAC.Config(), "selective": SelectiveAC.Config(), "none": None}[
            settings.activation_checkpointing
        ],
        compile=CompileConfig(enable=settings.compile == "yes"),
    )


def build(settings: Settings, run: Run, data: dict[str, Any], options: list[str]) -> Trainer.Config:
    """Return the config of a run.

    Args:
        data: what prepare.py noted: `tokenizer`, `weights`, and what batches.py reads.
        options: torchtitan's own options, which win over everything else.
    """
    weights = Path(data["weights"]) if data.get("weights") else None
    config = base_of(settings, weights)
    spec = config.model_spec
    check_vocabulary(data.get("vocab_size", 0), spec.model.vocab_size)
    if spec.state_dict_adapter is GptOssStateDictAdapter:
        spec.state_dict_adapter = GptOssAdapter
    replicas = run.world_size // (ranks_of_node() * settings.pp) if settings.shard == "node" else 1
    config.hf_assets_path = data["tokenizer"]
    config.dump_folder = str(run.run_dir)
    config.training = dataclasses.replace(
        config.training,
        local_batch_size=settings.batch_size,
        global_batch_size=settings.global_batch or -1,
        seq_len=settings.seq_len,
        steps=settings.max_steps,
        mixed_precision_param="bfloat16" if settings.mixed_precision == "bf16" else "float32",
        disable_cuda_graphs=True,
    )
    config.parallelism = dataclasses.replace(
        config.parallelism,
        data_parallel_replicate_degree=replicas,
        pipeline_parallel_degree=settings.pp,
        tensor_parallel_degree=settings.tp,
        context_parallel_degree=settings.cp,
        expert_parallel_degree=settings.ep,
    )
    config.dataloader = loader_of(settings, data, split="train")
    config.validator = validation_of(settings, data)
    config.checkpoint = Checkpoints.Config(
        enable=True,
        folder=str(run.checkpoint_dir),
        interval=settings.checkpoint_every,
        local_every=settings.checkpoint_local_every,
        keep_latest_k=0,
        last_save_model_only=False,
        initial_load_path=str(weights) if weights else None,
        initial_load_in_hf=bool(weights),
        initial_load_in_hf_quantized=bool(weights and config_of(weights).get("quantization_config")),
        # A CPU would compute and write at the same time. saving.py falls back to "async".
        async_mode="disabled" if settings.is_cpu else "async_with_pinned_mem",
    )
    config.metrics = Rows.Config(
        enable_tensorboard=True,
        enable_wandb=settings.logger == "wandb",
        disable_color_printing=True,
    )
    if settings.profile_steps:
        first, last = map(int, settings.profile_steps.split("-"))
        config.profiler = window(first, last, has_memory=not settings.is_cpu)
    config.comm.train_timeout_seconds = int(process_group.STEP.total_seconds())
    config.debug.seed = settings.seed
    config.debug.enable_structured_logging = False
    if options:
        # Ends in tyro's words on an option that torchtitan does not have.
        kind, rules = type(config), custom_registry
        config = tyro.cli(kind, args=options, default=config, registry=rules, prog="titan --")
    return config
