"""Order of the sequences: each once in an epoch on any number of ranks, alone or in mixtures of texts."""

from collections import Counter
from pathlib import Path

import pytest
from trainkit.data.mixture import Mixture, MixtureError, parse_mixture
from trainkit.data.order import Order

SEQUENCES, SIZE = 1000, 5
ORDER = Order(sequences=SEQUENCES, seed=1337)


def read_step(first: int, *, ranks: int, micro_steps: int = 1) -> list[int]:
    """Return the sequences of a step, in the order of their positions."""
    return [
        sequence
        for micro_step in range(micro_steps)
        for rank in range(ranks)
        for sequence in ORDER.batch(first, size=SIZE, rank=rank, ranks=ranks, micro_step=micro_step)
    ]


def test_an_epoch_has_each_sequence_once() -> None:
    for ranks in (1, 2, 3, 8):
        read: list[int] = []
        while len(read) < 2 * SEQUENCES:
            read += read_step(len(read), ranks=ranks)
        first, second = read[:SEQUENCES], read[SEQUENCES : 2 * SEQUENCES]
        assert sorted(first) == sorted(second) == list(range(SEQUENCES))
        assert first != second
        assert first != sorted(first)
        # Each step is computed without those before it.
        assert read_step(29 * SIZE * ranks, ranks=ranks) == read[29 * SIZE * ranks :][: SIZE * ranks]
    for sequences in (1, 2, 3, 7, 16, 17, 255, 256, 257, 1025):
        for epoch in (0, 1, 10**6):
            order = Order(sequences=sequences, seed=0)
            found = order.batch(epoch * sequences, size=sequences, rank=0, ranks=1)
            assert sorted(found) == list(range(sequences))
    # No epoch before this one is computed either.
    assert len(set(Order(sequences=10**12, seed=1).batch(10**27, size=9, rank=0, ranks=1))) == 9


def test_ranks_and_versions_read_one_order() -> None:
    """A run that a new version resumes continues in the order in which it began."""
    assert read_step(123 * 40, ranks=8) == read_step(123 * 40, ranks=2, micro_steps=4)
    assert read_step(123 * 40, ranks=3) == read_step(123 * 40, ranks=8)[: 3 * SIZE]
    assert ORDER.batch(0, size=6, rank=0, ranks=1) == [95, 606, 419, 925, 890, 648]
    assert ORDER.batch(10 * SEQUENCES, size=6, rank=0, ranks=1) == [607, 487, 710, 861, 57, 264]


def test_orders_of_seeds_and_epochs_differ() -> None:
    orders = [
        Order(sequences=SEQUENCES, seed=seed).batch(epoch * SEQUENCES, size=SEQUENCES, rank=0, ranks=1)
        for seed in (1, 2)
        for epoch in (0, 1)
    ]
    for i, one in enumerate(orders):
        for other in orders[:i]:
            # Two random permutations have one place in common on average.
            assert sum(a == b for a, b in zip(one, other, strict=True)) < 10


def test_a_checkpoint_of_another_order_is_refused() -> None:
    ORDER.check(Path("/fsx/step-000001"), ORDER.note())
    for noted, sentence in (
        (None, "is of an older version, which read the sequences in another order"),
        ({"sequences": SEQUENCES, "seed": 3}, "was trained with SEED=3: give it, or another RUN_NAME"),
        ({"sequences": 7, "seed": 1337}, "was trained on 7 sequences, and there are 1000"),
    ):
        with pytest.raises(SystemExit) as caught:
            ORDER.check(Path("/fsx/step-000001"), noted)
        assert f"/fsx/step-000001 {sentence}" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_names_and_weights_of_a_mixture_are_read() -> None:
    for text, expected in {
        "a": {"a": 1.0},
        "a,b": {"a": 0.5, "b": 0.5},
        "a:7, b:3": {"a": 0.7, "b": 0.3},
        "hf:allenai/c4/en:0.9,hf:x/y:0.1": {"hf:allenai/c4/en": 0.9, "hf:x/y": 0.1},
        "hf:x/y": {"hf:x/y": 1.0},
    }.items():
        assert {part.name: part.weight for part in parse_mixture(text)} == pytest.approx(expected)
    for text, sentence in {
        "a,,b": "empty name",
        "a:0.5,a:0.5": "a name twice",
        "a:0.5,b": "with and without a weight",
        "a:1.2.3,b:1": "a weight that is not a number",
        "a:0,b:1": "less than 1/1000",
        "a:0": "less than 1/1000",
        "a:1,b:9999": "less than 1/1000",
    }.items():
        with pytest.raises(MixtureError, match=sentence):
            parse_mixture(text)


def mixture(text: str, *, sequences: tuple[int, ...] = (500, 80), seed: int = 7) -> Mixture:
    return Mixture(parts=parse_mixture(text), sequences=sequences, seed=seed)


@pytest.mark.parametrize("text", ["a:0.7,b:0.3", "a:1,b:1,c:1", "a:0.0011,b:0.0011,c:0.9978"])
def test_each_block_of_a_mixture_has_its_shares(text: str) -> None:
    parts = parse_mixture(text)
    mixed = mixture(text, sequences=(500, 80, 40)[: len(parts)])
    assert sum(mixed.counts) == 1000
    found = [mixed.at(position) for position in range(3000)]
    for number, part in enumerate(parts):
        for block in range(3):
            rows = [text for text, _ in found[1000 * block : 1000 * block + 1000]]
            assert abs(rows.count(number) - 1000 * part.weight) <= 1
        # Each of a text's sequences is read equally often, or once more: no position is read twice.
        read = Counter(sequence for text, sequence in found if text == number)
        if sum(read.values()) >= mixed.sequences[number]:
            assert len(read) == mixed.sequences[number]
        assert max(read.values()) - min(read.values()) <= 1 or len(read) < mixed.sequences[number]
    assert [text for text, _ in found[:1000]] != sorted(text for text, _ in found[:1000])


def test_any_number_of_ranks_reads_the_same_mixture() -> None:
    mixed = mixture("a:0.7,b:0.3")
    four = [each for rank in range(4) for each in mixed.batch(120, size=3, rank=rank)]
    assert four == mixed.batch(120, size=12, rank=0)
    one = mixture("a", sequences=(500,))
    assert [one.at(position)[1] for position in range(500)] == [
        one.orders[0].sequence(position) for position in range(500)
    ]
    assert one.note() == {"sequences": 500, "seed": 7}


def test_a_checkpoint_of_another_mixture_is_refused() -> None:
    noted = mixture("a:0.7,b:0.3").note()
    for other, sentence in (
        (mixture("a:0.6,b:0.4"), "give the same DATA"),
        (mixture("a:0.7,b:0.3", sequences=(500, 81)), "give the same DATA"),
        (mixture("a:0.7,b:0.3", seed=8), "SEED=7"),
        (mixture("a", sequences=(500,)), "580 sequences"),
    ):
        with pytest.raises(SystemExit, match=sentence):
            other.check("step-5", noted)
