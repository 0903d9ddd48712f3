"""The model and its optimizer, as Megatron's core makes them from the settings."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from megatron.core import parallel_state
from megatron.core.distributed import (
    DistributedDataParallel,
    DistributedDataParallelConfig,
    finalize_model_grads,
)
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import (
    get_gpt_layer_local_spec,
    get_gpt_layer_with_transformer_engine_spec,
)
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler
from megatron.core.transformer import TransformerConfig
from megatron.core.transformer.module import Float16Module
from settings import Settings
from torch.nn import functional

GRADIENT_CLIP = 1.0
INIT_STD = 0.02
# GPT-2's GELU, with which its published weights and NVIDIA's were trained. Core's default is the exact GELU,
# but its fused bias and GELU computes this one.
GELU = partial(functional.gelu, approximate="tanh")


def make_model(settings: Settings, device: torch.device) -> GPTModel:
    """Return this rank's part of GPT-2, with random weights.

    They are drawn on the CPU for all tensor parallel ranks together, so TENSOR_PARALLEL does not change them.
    """
    is_fused = device.type == "cuda"
    config = TransformerConfig(
        num_layers=settings.gpt2_layers,
        hidden_size=settings.gpt2_width,
        num_attention_heads=settings.gpt2_heads,
        hidden_dropout=settings.gpt2_dropout,
        attention_dropout=settings.gpt2_dropout,
        init_method_std=INIT_STD,
        activation_func=functional.gelu if is_fused else GELU,
        # The defaults of Megatron-LM's own arguments; on GPUs torch.compile makes one kernel of each.
        bias_activation_fusion=is_fused,
        bias_dropout_fusion=is_fused,
        use_cpu_initialization=True,
        tensor_model_parallel_size=settings.tensor_parallel,
        pipeline_model_parallel_size=settings.pipeline_parallel,
        bf16=settings.mixed_precision == "bf16",
        params_dtype=dtype_of(settings),
        pipeline_dtype=dtype_of(settings),
        # These two are kernels of Apex; Transformer Engine has the softmax in its attention.
        gradient_accumulation_fusion=False,
        masked_softmax_fusion=False,
    )
    fused = settings.transformer_impl == "transformer_engine"
    torch.manual_seed(settings.seed)
    model = GPTModel(
        config,
        get_gpt_layer_with_transformer_engine_spec() if fused else get_gpt_layer_local_spec(),
        vocab_size=settings.padded_vocab_size,
        max_sequence_length=settings.gpt2_context,
        pre_process=parallel_state.is_pipeline_first_stage(),
        post_process=parallel_state.is_pipeline_last_stage(),
        share_embeddings_and_output_weights=True,
    )
    return model.to(device)


def dtype_of(settings: Settings) -> torch.dtype:
    """Return the type of the model's weights; the optimizer has its own in fp32."""
    return torch.bfloat16 if settings.mixed_precision == "bf16" else torch.float32


def make_parallel(model: GPTModel, settings: Settings) -> DistributedDataParallel:
    """Wrap the model, so that gradients are summed over the data parallel ranks."""
    config = model.config
    own: Any = Float16Module(config, model) if config.bf16 else model
    parallel = DistributedDataParallel(
        config,
        DistributedDataParallelConfig(
            grad_reduce_in_fp32=True,
            # The exchange overlaps with the backward pass, on a separate CUDA stream.
            overlap_grad_reduce=settings.device == "cuda",
            # check_finite checks after the exchange. This check would end one rank while the others wait.
            check_for_nan_in_grad=False,
        ),
        own,
    )
    config.finalize_model_grads_func = finalize_model_grads
    config.no_sync_func = parallel.no_sync if settings.device == "cuda" else None
    return parallel


def make_optimizer(model: DistributedDataParallel, settings: Settings) -> tuple[Any, OptimizerParamScheduler]:
    """Return AdamW with the paper's settings, and its learning rate: warm-up, then a cosine."""
    config = OptimizerConfig(
        optimizer="adam",
        lr=settings.learning_rate,
        min_lr=settings.min_learning_rate,
        weight_decay=settings.weight_decay,
        adam_beta1=0.9,
        adam_beta2=0.999,
        clip_grad=GRADIENT_CLIP,
        bf16=settings.mixed_precision == "bf16",
        params_dtype=dtype_of(settings),
    )
    optimizer = get_megatron_optimizer(config, [model])
    schedule = OptimizerParamScheduler(
        optimizer,
        init_lr=0.0,
        max_lr=settings.learning_rate,
        min_lr=min(settings.min_learning_rate, settings.learning_rate),
        lr_warmup_steps=min(settings.warmup_steps, settings.max_steps - 1),
        lr_decay_steps=settings.max_steps,
        lr_decay_style="cosine",
        start_wd=settings.weight_decay,
        end_wd=settings.weight_decay,
        wd_incr_steps=settings.max_steps,
        wd_incr_style="constant",
    )
    return optimizer, schedule


def parameters_of(settings: Settings) -> int:
    """Count the model's parameters without the position embeddings, for flops_per_token."""
    width = settings.gpt2_width
    layer = 12 * width**2 + 13 * width
    return settings.gpt2_layers * layer + 2 * width + settings.padded_vocab_size * width
