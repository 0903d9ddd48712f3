"""Encoding word by word. The tokenizers package is not here, so a slow test compares with it."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.unit.assets.training.workload_modules import Import, workload_on_the_path


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    with workload_on_the_path(monkeypatch, "gpt2") as load:
        yield load


class Counting:
    """An encoder to UTF-8 that notes which words it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, words: Sequence[str]) -> list[bytes]:
        self.asked += words
        return [word.encode() for word in words]


def words_of(load: Import, encode: Any) -> Any:
    return load("trainkit.data.words").Words(encode)


@pytest.mark.parametrize("text", ["", " ", "a", " a  b\n\n\tc ", "\x1ca\x85b\u3000", "no-space", "\n"])
def test_words_joined_are_the_text_and_each_begins_with_its_white_space(load: Import, text: str) -> None:
    module = load("trainkit.data.words")
    found = module.WORD.findall(text)
    assert "".join(found) == text
    assert all(word[0].isspace() for word in found[1:])
    assert words_of(load, Counting()).encode([text]) == [text.encode()]


def test_a_word_is_encoded_once_also_in_later_texts(load: Import) -> None:
    encode = Counting()
    words = words_of(load, encode)
    texts = ["one two one two", "two one two three"]
    assert words.encode(texts) == [text.encode() for text in texts]
    assert words.encode(["one three"]) == [b"one three"]
    assert sorted(encode.asked) == [" one", " three", " two", "one", "two"]


def test_known_words_are_forgotten_before_they_fill_the_memory(
    load: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load("trainkit.data.words"), "MOST_CHARACTERS", 10)
    encode = Counting()
    words = words_of(load, encode)
    for _ in range(2):
        assert words.encode(["a-long-word"]) == [b"a-long-word"]
        assert words.encode(["b"]) == [b"b"]
    assert encode.asked == ["a-long-word", "b", "a-long-word", "b"]
