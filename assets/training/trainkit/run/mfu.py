"""Model FLOPs utilisation: the share of an accelerator's peak that the model's own arithmetic uses."""

from __future__ import annotations


def flops_per_token(parameters: int, layers: int, width: int, context: int) -> float:
    """Return the FLOPs of one token, forward and backward: 6N + 12LHQT (PaLM, arXiv 2204.02311, appendix B).

    `parameters` without the position embeddings; `width` is H times Q, the heads' widths together.
    """
    return 6.0 * parameters + 12.0 * layers * width * context


def with_frozen_weights(flops: float, attention: float) -> float:
    """Return the FLOPs of a token, forward and backward, where no weight has gradients, as with LoRA: 4N.

    LoRA's own few matrices are then counted at two thirds.

    Args:
        flops: those with gradients of all weights, 6N and the attention.
        attention: the part of the attention, which multiplies activations alone.
    """
    return attention + (flops - attention) * 4 / 6


def mfu(
    tokens_per_s: float, flops_per_token: float, peak_tflops_a_rank: float | None, world_size: int
) -> float | None:
    """Return the share (0 to 1) at the tokens_per_s of all ranks together; None if the peak is not known."""
    if not peak_tflops_a_rank:
        return None
    return tokens_per_s * flops_per_token / (peak_tflops_a_rank * 1e12 * world_size)
