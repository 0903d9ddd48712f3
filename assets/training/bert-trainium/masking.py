"""Batches of masked language modelling and next sentence prediction, made of rows of sentence pairs.

Masks are drawn each time a row is read, from a key (seed, rows read before the step, micro-step, rank). A
text that is read forty times is masked in forty ways, the shards are a fifth of the size of masked ones, and
a resumed run needs no stored state. Static masks would have to be stored many times, as BERT's were.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pairs import ROW_HEAD, Special

Ids = npt.NDArray[np.int64]
# arXiv 1810.04805, section 3.1: 15 % of the tokens are predicted, at most 20 in a sequence of 128. Of these,
# 80 % are replaced with [MASK], 10 % with a random token, and 10 % remain unchanged.
PREDICTED_SHARE = 0.15
MOST_PREDICTED_SHARE = 20 / 128
MASKED, RANDOM = 0.8, 0.1
# The label that the loss ignores (torch.nn.CrossEntropyLoss).
IGNORED = -100


@dataclass(frozen=True)
class Batch:
    """Arrays of (sequences, context), and one label of a sequence."""

    input_ids: Ids
    token_type_ids: Ids
    attention_mask: Ids
    labels: Ids
    next_sentence_label: Ids
    """0: the second segment follows the first; 1: it is from another document."""


def mask(found: Ids, generator: np.random.Generator, *, special: Special, vocab_size: int) -> Batch:
    """Choose the tokens to predict, and hide them."""
    ids = found[:, ROW_HEAD:]
    context = ids.shape[1]
    there = ids != special.pad
    ordinary = there & (ids != special.cls) & (ids != special.sep)
    most = max(1, int(context * MOST_PREDICTED_SHARE))
    wanted = np.clip(np.round(ordinary.sum(axis=1) * PREDICTED_SHARE), 1, most)
    # Choose the required number of tokens with the lowest draws; excluded tokens get higher ones.
    draws = np.where(ordinary, generator.random(ids.shape), 2.0)
    places = np.argsort(np.argsort(draws, axis=1), axis=1)
    predicted = ordinary & (places < wanted[:, None])
    kind = generator.random(ids.shape)
    seen = np.where(predicted & (kind < MASKED), special.mask, ids)
    other = predicted & (kind >= MASKED) & (kind < MASKED + RANDOM)
    seen = np.where(other, generator.integers(0, vocab_size, ids.shape), seen)
    second = np.arange(context)[None, :] >= found[:, :1]
    return Batch(
        input_ids=seen,
        token_type_ids=(second & there).astype(np.int64),
        attention_mask=there.astype(np.int64),
        labels=np.where(predicted, ids, IGNORED),
        next_sentence_label=found[:, 1].copy(),
    )
