"""Mixtures of texts: parsed weights, exact shares, one order on any number of ranks."""

from collections import Counter
from collections.abc import Iterator
from types import ModuleType

import pytest

from tests.unit.assets.training.workload_modules import workload_on_the_path


@pytest.fixture
def mixture(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    with workload_on_the_path(monkeypatch, "titan") as load:
        yield load("trainkit.data.mixture")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", {"a": 1.0}),
        ("a,b", {"a": 0.5, "b": 0.5}),
        ("a:7, b:3", {"a": 0.7, "b": 0.3}),
        ("hf:allenai/c4/en:0.9,hf:x/y:0.1", {"hf:allenai/c4/en": 0.9, "hf:x/y": 0.1}),
        ("hf:x/y", {"hf:x/y": 1.0}),
    ],
)
def test_names_and_weights_are_read(mixture: ModuleType, text: str, expected: dict[str, float]) -> None:
    found = {part.name: part.weight for part in mixture.parse_mixture(text)}
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,,b", "empty name"),
        ("a:0.5,a:0.5", "a name twice"),
        ("a:0.5,b", "with and without a weight"),
        ("a:1.2.3,b:1", "a weight that is not a number"),
        ("a:0,b:1", "less than 1/1000"),
        ("a:0", "less than 1/1000"),
        ("a:1,b:9999", "less than 1/1000"),
    ],
)
def test_a_wrong_mixture_is_one_sentence(mixture: ModuleType, text: str, sentence: str) -> None:
    with pytest.raises(mixture.MixtureError, match=sentence):
        mixture.parse_mixture(text)


@pytest.mark.parametrize("text", ["a:0.7,b:0.3", "a:1,b:1,c:1", "a:0.0011,b:0.0011,c:0.9978"])
def test_each_block_has_the_shares_and_reads_each_text_in_its_own_order(
    mixture: ModuleType, text: str
) -> None:
    parts = mixture.parse_mixture(text)
    mixed = mixture.Mixture(parts=parts, sequences=(500, 80, 40)[: len(parts)], seed=7)
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


def test_any_number_of_ranks_reads_the_same(mixture: ModuleType) -> None:
    mixed = mixture.Mixture(parts=mixture.parse_mixture("a:0.7,b:0.3"), sequences=(500, 80), seed=7)
    four = [each for rank in range(4) for each in mixed.batch(120, size=3, rank=rank)]
    assert four == mixed.batch(120, size=12, rank=0)


def test_one_text_is_read_in_its_own_order_as_before(mixture: ModuleType) -> None:
    one = mixture.Mixture(parts=mixture.parse_mixture("a"), sequences=(500,), seed=7)
    assert [one.at(position)[1] for position in range(500)] == [
        one.orders[0].sequence(position) for position in range(500)
    ]
    assert one.note() == {"sequences": 500, "seed": 7}


@pytest.mark.parametrize(
    ("text", "sequences", "seed", "sentence"),
    [
        ("a:0.6,b:0.4", (500, 80), 7, "give the same DATA"),
        ("a:0.7,b:0.3", (500, 81), 7, "give the same DATA"),
        ("a:0.7,b:0.3", (500, 80), 8, "SEED=7"),
        ("a", (500,), 7, "580 sequences"),
    ],
)
def test_a_checkpoint_of_another_mixture_is_refused(
    mixture: ModuleType, text: str, sequences: tuple[int, ...], seed: int, sentence: str
) -> None:
    noted = mixture.Mixture(parts=mixture.parse_mixture("a:0.7,b:0.3"), sequences=(500, 80), seed=7).note()
    other = mixture.Mixture(parts=mixture.parse_mixture(text), sequences=sequences, seed=seed)
    with pytest.raises(SystemExit) as caught:
        other.check("step-5", noted)
    assert sentence in str(caught.value)
