"""bert-trainium's data: sentence pairs and masks."""

import itertools
from typing import Any

import numpy as np
import pytest

from tests.unit.assets.training.workload_modules import Import

CONTEXT = 32
# Ids of the special tokens are 0 to 4; a document's tokens say which sentence they come from.
FIRST_ORDINARY = 10


def documents(count: int = 40, sentences: int = 12) -> list[list[list[int]]]:
    """Each sentence is of one number, which no other sentence has."""
    numbers = itertools.count(FIRST_ORDINARY)
    return [[[next(numbers)] * (3 + (i + j) % 7) for j in range(sentences)] for i in range(count)]


def rows(load: Import, made_of: list[list[list[int]]]) -> list[list[int]]:
    pairs = load("pairs")
    special = pairs.Special(0, 1, 2, 3, 4)
    length = CONTEXT + pairs.ROW_HEAD
    flat = [n for e in pairs.rows_of(made_of, context=CONTEXT, special=special) for n in e]
    assert len(flat) % length == 0
    return [flat[i : i + length] for i in range(0, len(flat), length)]


def segments(row: list[int]) -> tuple[list[int], list[int]]:
    first = row[2 : 2 + row[0]]
    second = [token for token in row[2 + row[0] :] if token]
    assert (first[0], first[-1], second[-1]) == (2, 3, 3)
    return first[1:-1], second[:-1]


def test_a_second_segment_follows_or_is_another_documents(load: Import) -> None:
    made_of = documents()
    of_document = {s[0]: i for i, document in enumerate(made_of) for s in document}
    found = rows(load, made_of)
    assert rows(load, documents()) == found
    assert max(sum(token != 0 for token in row[2:]) for row in found) == CONTEXT
    for row in found:
        first, second = segments(row)
        assert len({of_document[token] for token in first}) == 1
        if row[1]:
            assert of_document[second[0]] != of_document[first[0]]
        else:
            # What does not fit is cut off, which may be whole sentences of so few tokens.
            assert of_document[second[0]] == of_document[first[0]]
            assert 1 <= second[0] - first[-1] <= 3
    share = sum(row[1] for row in found) / len(found)
    assert 0.35 < share < 0.75


def test_odd_documents_make_no_row_without_segments(load: Import) -> None:
    odd: list[list[list[list[int]]]] = [[[]], [[[], []]], [[[7] * 500]], [[[7] * 500, [8] * 500]]]
    for row in (row for made_of in odd for row in rows(load, made_of)):
        assert all(segments(row))
    pairs = load("pairs")
    assert pairs.cut([[1, 2, 3, 4, 5], [], [6]], 2) == [[1, 2], [3, 4], [5], [6]]
    text = "One sentence. Another!\n\nA heading\nIs it 3.5?  Yes.\n"
    assert pairs.sentences(text) == ["One sentence.", "Another!", "A heading", "Is it 3.5?", "Yes."]


@pytest.fixture
def batch(load: Import) -> Any:
    found = np.array(rows(load, documents()), dtype=np.int64)
    masking = load("masking")
    special = load("pairs").Special(0, 1, 2, 3, 4)
    made = masking.mask(found, np.random.default_rng([1, 2]), special=special, vocab_size=1000)
    again = masking.mask(found, np.random.default_rng([1, 2]), special=special, vocab_size=1000)
    other = masking.mask(found, np.random.default_rng([1, 3]), special=special, vocab_size=1000)
    return found, made, again, other


def test_15_percent_of_ordinary_tokens_are_hidden(batch: Any) -> None:
    found, made, again, other = batch
    assert (made.input_ids == again.input_ids).all()
    assert (made.labels == again.labels).all()
    assert (made.labels != other.labels).any(), "the key decides"
    ids = found[:, 2:]
    predicted = made.labels != -100
    assert (made.labels[predicted] == ids[predicted]).all()
    assert (ids[predicted] >= FIRST_ORDINARY).all()
    assert (made.input_ids[~predicted] == ids[~predicted]).all()
    ordinary = (ids >= FIRST_ORDINARY).sum(axis=1)
    assert abs(predicted.sum(axis=1) - 0.15 * ordinary).max() <= 1
    assert predicted.sum(axis=1).max() <= CONTEXT * 20 / 128
    hidden = (made.input_ids[predicted] == 4).mean()
    kept = (made.input_ids[predicted] == ids[predicted]).mean()
    assert 0.7 < hidden < 0.9
    assert 0.02 < kept < 0.2


def test_segments_and_padding_are_told(batch: Any) -> None:
    found, made, _, _ = batch
    for row, types, there in zip(found, made.token_type_ids, made.attention_mask, strict=True):
        tokens = int((row[2:] != 0).sum())
        assert list(there) == [1] * tokens + [0] * (CONTEXT - tokens)
        assert list(types) == [0] * row[0] + [1] * (tokens - row[0]) + [0] * (CONTEXT - tokens)
    assert list(made.next_sentence_label) == list(found[:, 1])
