"""A Llama: pre-normalised decoder with RMSNorm, rotary positions, grouped queries and SwiGLU, in plain torch.

After arXiv 2302.13971 (Llama) and 2407.21783 (Llama 3). Weights are named by what they do, not as in the
published checkpoints.
"""

from __future__ import annotations

import hashlib

import torch
from sizes import Shape
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

NORM_EPS = 1e-5
INITIAL_STD = 0.02


class Attention(nn.Module):
    """Causal attention, in which several query heads share a head of keys and values."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.head_width = shape.head_width
        self.queries_a_key = shape.heads // shape.kv_heads
        self.query = nn.Linear(shape.width, shape.width, bias=False)
        self.key = nn.Linear(shape.width, shape.kv_heads * shape.head_width, bias=False)
        self.value = nn.Linear(shape.width, shape.kv_heads * shape.head_width, bias=False)
        self.output = nn.Linear(shape.width, shape.width, bias=False)

    def forward(self, x: Tensor, rope: Tensor) -> Tensor:
        """Map (batch, tokens, width) to the same."""
        query, key, value = (
            layer(x).unflatten(-1, (-1, self.head_width)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        query, key = rotate(query, rope), rotate(key, rope)
        # Repeated here and not in the kernel (enable_gqa): not every kernel can, as those for fp32.
        key, value = (each.repeat_interleave(self.queries_a_key, dim=1) for each in (key, value))
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        attended: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return attended


class FeedForward(nn.Module):
    """The feed-forward part of a layer (SwiGLU)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate = nn.Linear(shape.width, shape.hidden, bias=False)
        self.up = nn.Linear(shape.width, shape.hidden, bias=False)
        self.output = nn.Linear(shape.hidden, shape.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, tokens, width) to the same."""
        changed: Tensor = self.output(functional.silu(self.gate(x)) * self.up(x))
        return changed


class Block(nn.Module):
    """One layer: attention, then the feed-forward part."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(shape.width, eps=NORM_EPS)
        self.attention = Attention(shape)
        self.feed_forward_norm = nn.RMSNorm(shape.width, eps=NORM_EPS)
        self.feed_forward = FeedForward(shape)
        self.recompute = False
        # An attribute, so that it can be replaced by what torch.compile makes of it.
        self.compute = self.forward_once

    def forward(self, x: Tensor, rope: Tensor) -> Tensor:
        """Map (batch, tokens, width) to the same; FSDP's exchanges are not recomputed."""
        if self.recompute and self.training:
            again: Tensor = checkpoint(self.compute, x, rope, use_reentrant=False)
            return again
        return self.compute(x, rope)

    def forward_once(self, x: Tensor, rope: Tensor) -> Tensor:
        """Compute the layer, whose activations may be computed again."""
        x = x + self.attention(self.attention_norm(x), rope)
        added: Tensor = x + self.feed_forward(self.feed_forward_norm(x))
        return added


class Llama(nn.Module):
    """The model, from token ids to logits."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocab_size, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.width, eps=NORM_EPS)
        # A tied head is no module: the embedding's matrix stays one parameter whatever is done to the model.
        self.head = None if shape.tied else nn.Linear(shape.width, shape.vocab_size, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        """Map (batch, tokens) to (batch, tokens, vocabulary)."""
        rope = rope_table(ids.shape[1], self.shape, ids.device)
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x, rope)
        x = self.norm(x)
        logits: Tensor = functional.linear(x, self.embedding.weight) if self.head is None else self.head(x)
        return logits

    def initialise(self, *, seed: int) -> None:
        """Draw random weights, the same however the model is spread: each whole, from its own numbers.

        Normal with 0.02; less for what adds to the residual stream, by the root of the additions (GPT-2).
        """
        for name, parameter in self.named_parameters():
            whole = torch.ones(parameter.shape, device=parameter.device)
            if parameter.dim() > 1:
                own = hashlib.sha256(f"{seed} {name}".encode()).digest()
                numbers = torch.Generator(parameter.device).manual_seed(int.from_bytes(own[:7], "big"))
                std = INITIAL_STD / ((2 * self.shape.layers) ** 0.5 if ".output." in name else 1.0)
                whole.normal_(0.0, std, generator=numbers)
            if isinstance(parameter, DTensor):
                # Each rank has drawn all of it, so nothing has to be sent.
                mesh, placements = parameter.device_mesh, parameter.placements
                whole = distribute_tensor(whole, mesh, placements, src_data_rank=None)
            with torch.no_grad():
                parameter.copy_(whole)


def rope_table(tokens: int, shape: Shape, device: torch.device) -> Tensor:
    """Return (2, tokens, head width / 2) in fp32: cosine and sine of position / theta^(2i / head width)."""
    pairs = torch.arange(0, shape.head_width, 2, device=device, dtype=torch.float32)
    angles = torch.outer(
        torch.arange(tokens, device=device, dtype=torch.float32),
        shape.rope_theta ** (-pairs / shape.head_width),
    )
    return torch.stack((angles.cos(), angles.sin()))


def rotate(x: Tensor, rope: Tensor) -> Tensor:
    """Turn each pair (i, i + half) of a head by its position's angle; in fp32, returned in x's type."""
    cosine, sine = rope.unbind()
    first, second = x.float().chunk(2, dim=-1)
    turned = torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)
    return turned.type_as(x)


def loss_of(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the mean cross-entropy in nats a token, in fp32."""
    return functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
