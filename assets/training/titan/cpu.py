"""Replacements that let torchtitan 0.3.0 train on CPUs; imported before torchtitan, only with DEVICE=cpu.

torchtitan asks for an accelerator once, at its import, its attention kernel has no backward pass on CPUs, and
gloo lacks a reduction that FSDP uses by default, and an exchange of experts' tokens. Model, data,
parallelism, checkpoints and loop stay its own.
"""

from __future__ import annotations

import types
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FSDPModule
from torch.nn.attention.flex_attention import AuxOutput, create_block_mask, create_mask
from torch.nn.functional import scaled_dot_product_attention
from torchtitan.tools import utils

RESULTS: dict[str, Any] = {
    "current_device": 0,
    "get_device_name": "CPU",  # a name without a known peak
    "get_device_properties": types.SimpleNamespace(total_memory=1 << 40, name="CPU"),
    "reset_peak_memory_stats": None,
    "empty_cache": None,
    "memory_stats": {},  # metrics.jsonl has the memory of the process
}
"""Results of the functions of torch.cuda that torchtitan calls, and torch.cpu lacks or has otherwise."""


def dense_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    block_mask: Any,
    scale: float | None,
    enable_gqa: bool,
    return_aux: Any,
    **_unused: Any,
) -> tuple[torch.Tensor, AuxOutput]:
    """Compute FlexAttention with a dense mask. Shapes: (batch, heads, tokens, head size)."""
    mask = create_mask(block_mask.mask_mod, q.shape[0], 1, q.shape[2], k.shape[2], device="cpu")
    out = scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale, enable_gqa=enable_gqa)
    if not return_aux.lse:
        return out, AuxOutput()
    scores = q @ k.repeat_interleave(q.shape[1] // k.shape[1], dim=1).mT * (scale or q.shape[-1] ** -0.5)
    return out, AuxOutput(lse=scores.masked_fill(~mask, -torch.inf).logsumexp(-1))


def all_to_all(outputs: list[torch.Tensor], inputs: list[torch.Tensor], group: Any = None) -> None:
    """Exchange tensors whose first dimensions differ, which gloo does only from one tensor to another."""
    sizes = [[len(each) for each in tensors] for tensors in (outputs, inputs)]
    found = torch.empty_like(torch.cat(outputs))
    dist.all_to_all_single(found, torch.cat(inputs), *sizes, group=group)
    for output, part in zip(outputs, found.split(sizes[0]), strict=True):
        output.copy_(part)


def install() -> None:
    """Put the replacements into torchtitan and FSDP2; call it before anything else of torchtitan."""
    functions = {name: lambda *_, result=each: result for name, each in RESULTS.items()}
    utils.device_type, utils.device_module = "cpu", types.SimpleNamespace(**vars(torch.cpu) | functions)
    utils.get_local_device = lambda: torch.device("cpu")

    from torchtitan.models.common import attention  # noqa: PLC0415 (after the device)

    attention.FlexAttention.compiled_flex_attn = staticmethod(dense_attention)
    # torch.compile calls g++ on CPUs, which an image of a container need not have.
    attention._compiled_create_block_mask = create_block_mask
    dist.all_to_all = all_to_all
    divide = FSDPModule.set_gradient_divide_factor

    def divide_by_sum(module: FSDPModule, factor: float) -> None:
        divide(module, factor)
        module.set_force_sum_reduction_for_comms(True)

    FSDPModule.set_gradient_divide_factor = divide_by_sum
