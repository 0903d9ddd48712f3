"""Mixture of several texts by weight: the text and the sequence at each position of a training.

A block of 1,000 positions has sequences of each text according to its weight, in an order by the seed. The
text and the sequence at a position are computed from the position alone, as in trainkit.data.order, so a
resume needs nothing else, on any number of ranks.
"""

from __future__ import annotations

import bisect
import itertools
import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from trainkit.data.order import Order
from trainkit.run.run import die

BLOCK = 1000
_PART = re.compile(r"(?P<name>[^,]+?)(?::(?P<weight>[0-9.]+))?")


class MixtureError(Exception):
    """An error in the description of a mixture. The message is one sentence."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One text of a mixture."""

    name: str
    weight: float
    """Share of the sequences; the weights of a mixture add up to 1."""


def parse_mixture(text: str) -> tuple[Part, ...]:
    """Parse `a`, `a,b` (equal weights) or `a:0.7,b:0.3`; a name may have a prefix, such as hf: in hf:x.

    Raises:
        MixtureError: a weight is missing or no positive number, a share is below 1/1000, or a name is twice
            there.
    """
    found = [_PART.fullmatch(each.strip()) for each in text.split(",")]
    if not all(found):
        raise MixtureError(f'"{text}" has an empty name: give NAME, or NAME:WEIGHT,NAME:WEIGHT.')
    names = [each["name"] for each in found if each]
    given = [each["weight"] for each in found if each]
    if len(set(names)) < len(names):
        raise MixtureError(f'"{text}" has a name twice: give it once, with the sum of its weights.')
    if any(given) and not all(given):
        lack = ", ".join(name for name, weight in zip(names, given, strict=True) if not weight)
        raise MixtureError(
            f'"{text}" has names with and without a weight ({lack}): give all of them one, such as :0.7, or '
            "none."
        )
    try:
        weights = [float(each or 1) for each in given]
    except ValueError:
        raise MixtureError(f'"{text}" has a weight that is not a number: give a:0.7,b:0.3.') from None
    total = sum(weights)
    if not total or min(weights) / total < 1 / BLOCK:
        raise MixtureError(f'"{text}" has a share of less than 1/{BLOCK}: give each name a larger weight.')
    return tuple(Part(name=name, weight=weight / total) for name, weight in zip(names, weights, strict=True))


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """Order of the sequences of several texts; for one text it is that text's own Order."""

    parts: tuple[Part, ...]
    sequences: tuple[int, ...]
    """Number of sequences of each text."""
    seed: int

    @cached_property
    def orders(self) -> list[Order]:
        """Return the order of each text."""
        return [Order(sequences=each, seed=self.seed) for each in self.sequences]

    @cached_property
    def counts(self) -> list[int]:
        """Sequences of each text in a block, by largest remainders."""
        exact = [part.weight * BLOCK for part in self.parts]
        counts = [max(1, math.floor(each)) for each in exact]
        by_remainder = sorted(range(len(exact)), key=lambda at: counts[at] - exact[at])
        for at in itertools.islice(itertools.cycle(by_remainder), BLOCK - sum(counts)):
            counts[at] += 1
        return counts

    def at(self, position: int) -> tuple[int, int]:
        """Return the number of the text, and its sequence, at a position since the training's start."""
        if len(self.parts) == 1:
            return 0, self.orders[0].sequence(position)
        # The order within a block is the order of 1,000 sequences in a separate epoch.
        slot = Order(sequences=BLOCK, seed=self.seed).sequence(position)
        ends = list(itertools.accumulate(self.counts))
        text = bisect.bisect_right(ends, slot)
        within = slot - (ends[text] - self.counts[text])
        return text, self.orders[text].sequence(position // BLOCK * self.counts[text] + within)

    def batch(self, first: int, *, size: int, rank: int) -> list[tuple[int, int]]:
        """Return text and sequence of a rank's `size` positions after position `first` of all ranks."""
        begin = first + rank * size
        return [self.at(position) for position in range(begin, begin + size)]

    def note(self) -> dict[str, Any]:
        """Return the values that determine the order, for a checkpoint; for one text, its Order's."""
        if len(self.parts) == 1:
            return self.orders[0].note()
        return {"sequences": sum(self.sequences), "seed": self.seed, "mixture": self._words()}

    def check(self, checkpoint: object, noted: Any) -> None:
        """Die unless a checkpoint was written in this order; arguments as of Order.check."""
        if len(self.parts) == 1 or not isinstance(noted, dict) or "mixture" not in noted:
            Order(sequences=sum(self.sequences), seed=self.seed).check(checkpoint, noted)
        elif noted["mixture"] != self._words():
            die(
                f"{checkpoint} was trained on {noted['mixture']}, and this run has {self._words()}: give the "
                "same DATA, or another RUN_NAME."
            )
        elif noted.get("seed") != self.seed:
            die(f"{checkpoint} was trained with SEED={noted.get('seed')}: give it, or another RUN_NAME.")

    def _words(self) -> str:
        return ", ".join(
            f"{part.name} ({count}/{BLOCK} of {number} sequences)"
            for part, count, number in zip(self.parts, self.counts, self.sequences, strict=True)
        )
