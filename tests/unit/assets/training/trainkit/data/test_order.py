"""Order of the sequences: each one once in an epoch, on any number of ranks, computed from the position."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.assets.training.workload_modules import workload_on_the_path

SEQUENCES, SIZE = 1000, 5
# A run that a new version continues goes on in the order in which it began.
FIRST = [95, 606, 419, 925, 890, 648]
TENTH_EPOCH = [607, 487, 710, 861, 57, 264]


@pytest.fixture
def order(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    with workload_on_the_path(monkeypatch, "gpt2") as load:
        yield load("trainkit.data.order")


def read_step(order: ModuleType, first: int, *, ranks: int, micro_steps: int = 1) -> list[int]:
    """Return the sequences of a step, in the order of their positions."""
    made = order.Order(sequences=SEQUENCES, seed=1337)
    return [
        sequence
        for micro_step in range(micro_steps)
        for rank in range(ranks)
        for sequence in made.batch(first, size=SIZE, rank=rank, ranks=ranks, micro_step=micro_step)
    ]


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_an_epoch_has_each_sequence_once_on_any_number_of_ranks(order: ModuleType, ranks: int) -> None:
    read: list[int] = []
    while len(read) < 2 * SEQUENCES:
        read += read_step(order, len(read), ranks=ranks)
    first, second = read[:SEQUENCES], read[SEQUENCES : 2 * SEQUENCES]
    assert sorted(first) == sorted(second) == list(range(SEQUENCES))
    assert first != second
    assert first != sorted(first)


@pytest.mark.parametrize("sequences", [1, 2, 3, 7, 16, 17, 255, 256, 257, 1025])
def test_any_number_of_sequences_is_permuted(order: ModuleType, sequences: int) -> None:
    made = order.Order(sequences=sequences, seed=0)
    for epoch in (0, 1, 10**6):
        first = epoch * sequences
        found = made.batch(first, size=sequences, rank=0, ranks=1)
        assert sorted(found) == list(range(sequences))


def test_fewer_ranks_with_more_micro_steps_read_the_same_sequences(order: ModuleType) -> None:
    first = 123 * 40
    assert read_step(order, first, ranks=8) == read_step(order, first, ranks=2, micro_steps=4)


def test_a_step_is_computed_without_those_before_it(order: ModuleType) -> None:
    read: list[int] = []
    for _ in range(30):
        read += read_step(order, len(read), ranks=8)
    # A run that changes from eight ranks to three in the middle continues behind the last sequence read.
    assert read_step(order, 29 * 40, ranks=8) == read[29 * 40 :]
    assert read_step(order, 29 * 40, ranks=3) == read[29 * 40 :][: 3 * SIZE]
    # No epoch before this one is computed either: the position is that of the 10^15th epoch.
    assert len(set(order.Order(sequences=10**12, seed=1).batch(10**27, size=9, rank=0, ranks=1))) == 9


def test_seeds_and_epochs_give_orders_that_are_not_alike(order: ModuleType) -> None:
    orders = [
        order.Order(sequences=SEQUENCES, seed=seed).batch(epoch * SEQUENCES, size=SEQUENCES, rank=0, ranks=1)
        for seed in (1, 2)
        for epoch in (0, 1)
    ]
    for i, one in enumerate(orders):
        for other in orders[:i]:
            # Two random permutations have one place in common on average.
            assert sum(a == b for a, b in zip(one, other, strict=True)) < 10


@pytest.mark.slow
def test_each_sequence_is_as_likely_at_each_place(order: ModuleType) -> None:
    epochs, places = 2000, 10
    made = order.Order(sequences=places, seed=7)
    found = Counter(
        (place, made.sequence(epoch * places + place)) for epoch in range(epochs) for place in range(places)
    )
    expected = epochs / places
    chi_squared = sum(
        (found[place, sequence] - expected) ** 2 / expected
        for place in range(places)
        for sequence in range(places)
    )
    # 81 degrees of freedom: above 126 with a probability of 0.1 %.
    assert chi_squared < 126


def test_the_order_stays_the_same_from_version_to_version(order: ModuleType) -> None:
    made = order.Order(sequences=SEQUENCES, seed=1337)
    assert made.batch(0, size=6, rank=0, ranks=1) == FIRST
    assert made.batch(10 * SEQUENCES, size=6, rank=0, ranks=1) == TENTH_EPOCH


def test_a_checkpoint_of_the_same_order_is_taken(order: ModuleType) -> None:
    made = order.Order(sequences=SEQUENCES, seed=1337)
    made.check(Path("/fsx/step-000001"), made.note())


@pytest.mark.parametrize(
    ("noted", "sentence"),
    [
        (None, "is of an older version, which read the sequences in another order"),
        ({"sequences": SEQUENCES, "seed": 3}, "was trained with SEED=3: give it, or another RUN_NAME"),
        ({"sequences": 7, "seed": 1337}, "was trained on 7 sequences, and there are 1000"),
    ],
)
def test_a_checkpoint_of_another_order_is_refused_in_one_sentence(
    order: ModuleType, noted: dict[str, int] | None, sentence: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        order.Order(sequences=SEQUENCES, seed=1337).check(Path("/fsx/step-000001"), noted)
    assert f"/fsx/step-000001 {sentence}" in str(caught.value)
    assert "\n" not in str(caught.value)
