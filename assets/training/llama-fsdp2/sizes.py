"""The sizes of the Llama models, and their numbers of parameters. Needs no package."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The model's sizes; a checkpoint fits only a model of the same sizes."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    """Heads of keys and values; each serves heads / kv_heads query heads (arXiv 2305.13245)."""
    hidden: int
    """Width inside of the feed-forward part, which has three matrices (SwiGLU, arXiv 2002.05202)."""
    vocab_size: int
    tied: bool
    """True if the matrix of the embeddings is that of the output, too."""
    rope_theta: float
    """Base of the rotary embeddings' wavelengths (arXiv 2104.09864)."""

    @property
    def head_width(self) -> int:
        """Width of one head."""
        return self.width // self.heads

    @property
    def embedding(self) -> int:
        """Number of parameters of one matrix of the vocabulary."""
        return self.vocab_size * self.width

    @property
    def parameters(self) -> int:
        """Number of all parameters."""
        attention = 2 * self.width**2 + 2 * self.width * self.kv_heads * self.head_width
        block = attention + 3 * self.width * self.hidden + 2 * self.width
        matrices = 1 if self.tied else 2
        return self.layers * block + self.width + matrices * self.embedding

    @property
    def computing_parameters(self) -> int:
        """Number of the parameters that multiply a token: embeddings are looked up, unless they are tied."""
        return self.parameters - (0 if self.tied else self.embedding)


SIZES = {
    "tiny": Shape(
        layers=2,
        width=128,
        heads=4,
        kv_heads=2,
        hidden=384,
        vocab_size=2048,
        tied=True,
        rope_theta=10_000.0,
    ),
    "125m": Shape(
        layers=12,
        width=768,
        heads=12,
        kv_heads=4,
        hidden=2944,
        vocab_size=32_000,
        tied=True,
        rope_theta=10_000.0,
    ),
    # Llama 3.2 1B and Llama 3 8B, from their config.json; without 3.2's stretching of positions beyond 8,192.
    "1b": Shape(
        layers=16,
        width=2048,
        heads=32,
        kv_heads=8,
        hidden=8192,
        vocab_size=128_256,
        tied=True,
        rope_theta=500_000.0,
    ),
    "8b": Shape(
        layers=32,
        width=4096,
        heads=32,
        kv_heads=8,
        hidden=14_336,
        vocab_size=128_256,
        tied=False,
        rope_theta=500_000.0,
    ),
}
