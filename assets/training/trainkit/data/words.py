"""Encoding of a text word by word, since most words of a text repeat and their ids are then known.

GPT-2's pre-tokenizer never joins a character with white space after it. So the ids of a text are the ids of
its words in order, each with the white space before it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# White space as Unicode and the tokenizers library define it; \s of Python has four control characters more.
SPACE = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
WORD = re.compile(f"[{SPACE}]*[^{SPACE}]+|[{SPACE}]+")
# Known words take about 30 bytes per character. At this limit all are dropped; frequent words return soon.
MOST_CHARACTERS = 2**19

Encode = Callable[[Sequence[str]], list[bytes]]


def text_encoder(tokenizer: Tokenizer, to_bytes: Callable[[Sequence[int]], bytes]) -> Encode:
    """Return a function that encodes texts like the tokenizer, word by word if that gives the same ids.

    Args:
        to_bytes: converts ids to the bytes of a file.
    """

    def encode(texts: Sequence[str]) -> list[bytes]:
        found = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [to_bytes(each.ids) for each in found]

    return Words(encode).encode if is_by_word(tokenizer) else encode


def is_by_word(tokenizer: Tokenizer) -> bool:
    """Return True if the tokenizer splits a text as GPT-2's does, and encodes each word separately."""
    from tokenizers.models import BPE  # noqa: PLC0415 (not every program here has the package)
    from tokenizers.pre_tokenizers import ByteLevel  # noqa: PLC0415

    cut, model = tokenizer.pre_tokenizer, tokenizer.model
    return (
        tokenizer.normalizer is None
        and isinstance(cut, ByteLevel)
        and cut.use_regex
        and not cut.add_prefix_space
        and isinstance(model, BPE)
        and not model.dropout
        # A tokenizer finds added tokens that are not special before it splits the text.
        and tokenizer.encode_special_tokens
        and all(token.special for token in tokenizer.get_added_tokens_decoder().values())
    )


class Words:
    """The ids of words, which are encoded at their first occurrence."""

    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        self._known: dict[str, bytes] = {}
        self._characters = 0

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        """Return the ids of each text."""
        cut = [WORD.findall(text) for text in texts]
        if self._characters > MOST_CHARACTERS:
            self._known, self._characters = {}, 0
        new = list(set(itertools.chain.from_iterable(cut)).difference(self._known))
        self._characters += sum(map(len, new))
        self._known.update(zip(new, self._encode(new), strict=True))
        return [b"".join(map(self._known.__getitem__, words)) for words in cut]
