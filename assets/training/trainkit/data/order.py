"""Order in which a training reads the sequences of its data: each sequence once per epoch.

The sequence at a position is computed from seed, epoch and position, so nothing is held in memory, and a
resume on any number of ranks needs the position alone. Grain (index_shuffle) and TensorFlow
(random_index_shuffle) do the same: a block cipher over the next power of two, applied again where its result
is not a sequence.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

from trainkit.run.run import die

# Four rounds of a Feistel network are a pseudo-random permutation (Luby and Rackoff, 1988); halves of less
# than four bits would leave out most permutations of a few sequences.
_ROUNDS, _LEAST_BITS = 4, 8


@dataclass(frozen=True, kw_only=True)
class Order:
    """Permutation of the sequences of one split, which differs in each epoch."""

    sequences: int
    """Number of sequences; an epoch has as many positions."""
    seed: int

    def batch(self, first: int, *, size: int, rank: int, ranks: int, micro_step: int = 0) -> list[int]:
        """Return the `size` sequences of a rank's batch in one micro-step, counted from 0.

        Args:
            first: position of the step's first sequence: the number that all ranks have read before it.
        """
        first += (micro_step * ranks + rank) * size
        return [self.sequence(position) for position in range(first, first + size)]

    def sequence(self, position: int) -> int:
        """Return the sequence at a position, counted from the start of the training."""
        epoch, found = divmod(position, self.sequences)
        found = self._encrypt(found, epoch)
        while found >= self.sequences:
            found = self._encrypt(found, epoch)
        return found

    def _encrypt(self, number: int, epoch: int) -> int:
        """Permute the numbers below the next power of two."""
        bits = max(_LEAST_BITS, (self.sequences - 1).bit_length())
        low, high = bits // 2, bits - bits // 2
        left, right = number >> low, number & ((1 << low) - 1)
        for i in range(_ROUNDS):
            key = b"%d %d %d %d" % (self.seed, epoch, i, right)
            drawn = int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little")
            left, right = right, left ^ (drawn & ((1 << (low if i % 2 else high)) - 1))
        return left << low | right

    def note(self) -> dict[str, Any]:
        """Return the values that determine the order, for a checkpoint."""
        return asdict(self)

    def check(self, checkpoint: object, noted: Any) -> None:
        """Die unless a checkpoint was written in this order.

        Args:
            checkpoint: its path, for the message.
            noted: its record of the order; None if it has none.
        """
        if noted == self.note():
            return
        if not isinstance(noted, dict):
            die(
                f"{checkpoint} is of an older version, which read the sequences in another order, so its "
                "epoch cannot be continued: begin another RUN_NAME."
            )
        if noted.get("seed") != self.seed:
            die(f"{checkpoint} was trained with SEED={noted.get('seed')}: give it, or another RUN_NAME.")
        die(
            f"{checkpoint} was trained on {noted.get('sequences')} sequences, and there are "
            f"{self.sequences}: give its data and length of sequences, or another RUN_NAME."
        )
