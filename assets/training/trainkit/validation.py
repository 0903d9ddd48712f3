"""Sequences of a validation: always the same, for any SEED, number of ranks and BATCH_SIZE."""

from __future__ import annotations

from trainkit.data.order import Order

SEED = 1337
"""Decides which sequences of a split are read, and in a masked model what is hidden, in every run."""


def batches_of_rank(sequences: int, wanted: int, *, rank: int, ranks: int, size: int) -> list[list[int]]:
    """Return the sequences of each batch of a rank; ranks differ by one sequence at most, and may have none.

    Args:
        sequences: number of sequences of the split, each of which is read once at most.
        wanted: EVAL_SEQUENCES.
        size: sequences of a batch; the last one may have fewer.
    """
    order = Order(sequences=sequences, seed=SEED)
    own = [order.sequence(position) for position in range(rank, min(wanted, sequences), ranks)]
    return [own[begin : begin + size] for begin in range(0, len(own), size)]
