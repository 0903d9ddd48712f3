"""The tokens that a rank trains on, decided by seed and step alone, so that a resume needs no state."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from trainkit.data.shards import Tokens

# The first number of a key: the training's own sequences, or the validation's.
TRAINING, VALIDATION = 0, 1


def starts_of(
    key: list[int], *, tokens: int, length: int, ranks: int, micro_steps: int, batch_size: int
) -> npt.NDArray[np.int64]:
    """Draw the (micro_steps, ranks, batch_size) first tokens of the sequences of one step.

    All ranks draw the same ones and take their own: as many sequences a step on fewer ranks, in more
    micro-steps, are the same sequences.
    """
    drawn = np.random.default_rng(key).integers(0, tokens - length + 1, micro_steps * ranks * batch_size)
    return drawn.reshape(micro_steps, ranks, batch_size)


def rows_of(tokens: Tokens, starts: npt.NDArray[np.int64], length: int) -> npt.NDArray[np.int64]:
    """Read (batch_size, length) token ids."""
    return np.stack([tokens.window(int(start), length) for start in starts])
