"""Batches of masked language modelling and next sentence prediction, made of rows of sentence pairs.

Masks are drawn anew whenever a row is read, from a key (seed, rows read before the step, micro-step, rank):
a text that is read forty times is masked in forty ways, the shards are a fifth of the size of masked ones,
and a resumed run has nothing to remember. Static masks would have to be made many times over, as BERT's were.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pairs import ROW_HEAD, Special

Ids = npt.NDArray[np.int64]
# arXiv 1810.04805, section 3.1: of the tokens 15 % are predicted, at most 20 in a sequence of 128; of those
# 80 % are seen as [MASK], 10 % as any token, and 10 % as what they are.
PREDICTED_SHARE = 0.15
MOST_PREDICTED_SHARE = 20 / 128
MASKED, RANDOM = 0.8, 0.1
# The label that the loss leaves out (torch.nn.CrossEntropyLoss).
IGNORED = -100


@dataclass(frozen=True)
class Batch:
    """Arrays of (sequences, context), and one label of a sequence."""

    input_ids: Ids
    token_type_ids: Ids
    attention_mask: Ids
    labels: Ids
    next_sentence_label: Ids
    """0: the second segment follows the first; 1: it comes from elsewhere."""


def mask(found: Ids, generator: np.random.Generator, *, special: Special, vocab_size: int) -> Batch:
    """Choose the tokens to predict, and hide them."""
    ids = found[:, ROW_HEAD:]
    context = ids.shape[1]
    there = ids != special.pad
    ordinary = there & (ids != special.cls) & (ids != special.sep)
    most = max(1, int(context * MOST_PREDICTED_SHARE))
    wanted = np.clip(np.round(ordinary.sum(axis=1) * PREDICTED_SHARE), 1, most)
    # The tokens with the lowest draws, as many as are wanted; the others draw more than any of them.
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
