"""Replacements that let torchtitan 0.3.0 train on CPUs; imported before torchtitan, only with DEVICE=cpu.

torchtitan asks for an accelerator once, at its import, its attention kernel has no backward pass on CPUs, and
gloo lacks a reduction that FSDP uses by default. Model, data, parallelism, checkpoints and loop stay its own.
"""

from __future__ import annotations

import types
from typing import Any

import torch
from torch.distributed.fsdp import FSDPModule
from torch.nn.attention.flex_attention import create_block_mask, create_mask
from torch.nn.functional import scaled_dot_product_attention
from torchtitan.tools import utils

MEMORY = ("active_bytes.all.peak", "reserved_bytes.all.peak", "num_alloc_retries", "num_ooms")


class CpuModule(types.ModuleType):
    """The functions of torch.cuda that torchtitan calls; the others are those of torch.cpu."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.cpu, name)

    def device_count(self) -> int:
        """Return more devices than a node has ranks."""
        return 1 << 10

    def set_device(self, _device: object) -> None:
        """Choose nothing: all ranks share the cores."""

    def current_device(self) -> int:
        """Return the one device."""
        return 0

    def get_device_name(self, _device: object = None) -> str:
        """Return a name without a known peak."""
        return "CPU"

    def get_device_properties(self, _device: object = None) -> types.SimpleNamespace:
        """Return a size of memory, by which torchtitan divides."""
        return types.SimpleNamespace(total_memory=1 << 40, name="CPU")

    def reset_peak_memory_stats(self, _device: object = None) -> None:
        """Do nothing: a CPU has no counters of its memory."""

    def empty_cache(self) -> None:
        """Do nothing: a CPU has no cache of an allocator."""

    def memory_stats(self, _device: object = None) -> dict[str, int]:
        """Return no memory: metrics.jsonl has that of the process."""
        return dict.fromkeys(MEMORY, 0)


def dense_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    block_mask: Any,
    scale: float | None,
    enable_gqa: bool,
    **_unused: Any,
) -> tuple[torch.Tensor, types.SimpleNamespace]:
    """Compute FlexAttention with a dense mask. Shapes: (batch, heads, tokens, head size)."""
    mask = create_mask(block_mask.mask_mod, q.shape[0], 1, q.shape[2], k.shape[2], device="cpu")
    out = scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale, enable_gqa=enable_gqa)
    return out, types.SimpleNamespace(lse=q.new_zeros(q.shape[:3]))


def install() -> None:
    """Put the replacements into torchtitan and FSDP2; call it before anything else of torchtitan."""
    utils.device_type, utils.device_module = "cpu", CpuModule("cpu")
    utils.get_local_device = lambda: torch.device("cpu")

    from torchtitan.models.common import attention  # noqa: PLC0415 (after the device)

    attention.FlexAttention.compiled_flex_attn = staticmethod(dense_attention)
    # torch.compile calls g++ on CPUs, which an image of a container need not have.
    attention._compiled_create_block_mask = create_block_mask
    divide = FSDPModule.set_gradient_divide_factor

    def divide_by_sum(module: FSDPModule, factor: float) -> None:
        divide(module, factor)
        module.set_force_sum_reduction_for_comms(True)

    FSDPModule.set_gradient_divide_factor = divide_by_sum
