"""Corrections of torchtitan 0.3.0, until newer releases have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.distributed.tensor import DTensor, Replicate
from torchtitan.models.common.attention import FusedQKVLinear
from torchtitan.models.gpt_oss.moe import GptOssGroupedExperts
from torchtitan.models.gpt_oss.state_dict_adapter import GptOssStateDictAdapter
from torchtitan.models.llama3.state_dict_adapter import Llama3StateDictAdapter

SHAPES = {"mlp1_weight": "_EGD", "mlp1_bias": "_EG", "mlp2_weight": "_EDF", "mlp2_bias": "_ED"}
"""Ends of the names of gpt_oss's experts, which its adapter lacks (torchtitan pull request 4475)."""


def install() -> None:
    """Put the corrections into torchtitan; call it before a model is built."""
    FusedQKVLinear._split_qkv_on_save = staticmethod(divided(FusedQKVLinear._split_qkv_on_save))
    for name in ("_permute", "_reverse_permute"):
        setattr(Llama3StateDictAdapter, name, gathered(getattr(Llama3StateDictAdapter, name)))
    GptOssGroupedExperts.forward = in_one_type(GptOssGroupedExperts.forward)


def in_one_type(experts: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Return what experts compute, in bf16, in the type of the tokens: fp32 with MIXED_PRECISION=no."""

    def forward(module: Any, tokens: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        return experts(module, tokens, counts).type_as(tokens)

    return forward


def divided(split: Callable[..., None]) -> Callable[..., None]:
    """Divide among the ranks again what torchtitan gathers to split it.

    Otherwise the first state dict, which torchtitan keeps, holds the matrices of all queries, keys and values
    on every rank: in fp32 3 GB of Llama 8B, 27 GB of 70B, and 152 GB of 405B.
    """

    def split_and_divide(module: Any, state: dict[str, Any], prefix: str, metadata: Any) -> None:
        fused = {kind: state.get(f"{prefix}wqkv.{kind}") for kind in ("weight", "bias")}
        split(module, state, prefix, metadata)
        for kind, whole in fused.items():
            if isinstance(whole, DTensor):
                for name in (f"{prefix}{each}.{kind}" for each in ("wq", "wk", "wv")):
                    state[name] = state[name].redistribute(placements=whole.placements)

    return split_and_divide


def gathered(permute: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Permute the whole of a matrix, of which each rank then takes its part (torchtitan pull request 4797).

    torch does not divide heads that are fewer than the ranks.
    """

    def permute_whole(adapter: Any, weight: torch.Tensor, *sizes: int) -> torch.Tensor:
        if not isinstance(weight, DTensor):
            return permute(adapter, weight, *sizes)
        whole = weight.redistribute(placements=[Replicate()] * weight.device_mesh.ndim)
        return permute(adapter, whole, *sizes).redistribute(placements=weight.placements)

    return permute_whole


class GptOssAdapter(GptOssStateDictAdapter):
    """torchtitan's adapter, for all weights of the experts, and for weights that are not in MXFP4.

    transformers has these without "_blocks" in their names, and transposed.
    """

    from_hf_map: dict[str, str]
    is_quantized = False
    """True while weights in MXFP4 are read."""

    def __init__(self, model_config: Any, hf_assets_path: str | None) -> None:
        super().__init__(model_config, hf_assets_path)
        self.from_hf_map = {k: v + SHAPES.get(v.rpartition(".")[2], "") for k, v in self.from_hf_map.items()}

    def to_hf(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        """Return torchtitan's weights by the names of the files."""
        return self._turned(super().to_hf(state_dict), "_proj_blocks", "_proj")

    def from_hf(self, hf_state_dict: dict[str, Any]) -> dict[str, Any]:
        """Return the weights of the files by torchtitan's names."""
        found: dict[str, Any] = super().from_hf(self._turned(hf_state_dict, "_proj", "_proj_blocks"))
        return found

    def _turned(self, weights: dict[str, Any], old: str, new: str) -> dict[str, Any]:
        """Transpose the matrices of the experts, whose names end with `old`, and name them with `new`."""
        experts = [] if self.is_quantized else [name for name in weights if name.endswith(old)]
        turned = {
            name.removesuffix(old) + new: weights[name].transpose(1, 2).contiguous() for name in experts
        }
        return {name: each for name, each in weights.items() if name not in experts} | turned
