"""Rows of token ids made of documents: BERT's sentence pairs, without masks.

A training example is made of a row: ROW_HEAD numbers, the length of the first segment ([CLS] and
[SEP] included) and whether the second one was drawn from elsewhere, then `context` ids, padded with [PAD].
The pairs are as in BERT (arXiv 1810.04805, section 3.1 and appendix A.2): half of the second segments
follow the first one in the text, half come from another document; one target length in ten is shorter.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

ROW_HEAD = 2
# Increase it when the same text gives other rows.
FORMAT = 2
SHORT_SHARE, RANDOM_SHARE = 0.1, 0.5
# [CLS] a [SEP] b [SEP]
SPECIAL_TOKENS_A_ROW = 3
# A sentence ends after a full stop and a blank, or at the end of a line. The rule is rough but consistent.
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")

Sentence = Sequence[int]
Document = Sequence[Sentence]


@dataclass(frozen=True)
class Special:
    """Ids of BERT's special tokens."""

    pad: int
    unk: int
    cls: int
    sep: int
    mask: int


def sentences(text: str) -> list[str]:
    """Split a text into sentences, without blanks around them."""
    return [each for part in SENTENCE_END.split(text) if (each := part.strip())]


def cut(document: Document, longest: int) -> list[Sentence]:
    """Split sentences that are longer than `longest`, so that no part of a long list is lost."""
    return [each[i : i + longest] for each in document for i in range(0, len(each), longest)]


def rows_of(documents: Sequence[Document], *, context: int, special: Special) -> list[list[int]]:
    """Make the rows of each document, joined in one list; the same documents give the same rows.

    The documents are of one split, so that training text and validation text do not mix.
    """
    seed = hashlib.sha256(repr([document[:1] for document in documents]).encode()).digest()
    generator = random.Random(seed)  # noqa: S311 (no secret)
    return [
        [number for row in _rows(document, documents, context, special, generator) for number in row]
        for document in documents
    ]


def _rows(
    document: Document,
    documents: Sequence[Document],
    context: int,
    special: Special,
    generator: random.Random,
) -> Iterator[list[int]]:
    others = [other for other in documents if other is not document] or [document]
    longest, at = context - SPECIAL_TOKENS_A_ROW, 0
    while at < len(document):
        length = generator.randint(2, longest) if generator.random() < SHORT_SHARE else longest
        chunk = _chunk(document, at, length)
        # The first segment ends here.
        end = generator.randint(1, len(chunk) - 1) if len(chunk) > 1 else 1
        first = _flat(chunk[:end])
        is_random = len(chunk) == 1 or generator.random() < RANDOM_SHARE
        if is_random:
            second = _part(generator.choice(others), length - len(first), generator)
            # The next row uses the text after the first segment.
            at += end
        else:
            second = _flat(chunk[end:])
            at += len(chunk)
        if not first or not second:
            continue
        _shorten(first, second, longest, generator)
        ids = [special.cls, *first, special.sep, *second, special.sep]
        yield [len(first) + 2, int(is_random), *ids, *[special.pad] * (context - len(ids))]


def _chunk(document: Document, at: int, length: int) -> list[Sentence]:
    """Collect consecutive sentences until they have `length` tokens."""
    chunk: list[Sentence] = []
    size = 0
    for sentence in document[at:]:
        chunk.append(sentence)
        size += len(sentence)
        if size >= length:
            break
    return chunk


def _part(document: Document, length: int, generator: random.Random) -> list[int]:
    """Take some sentences of a document, from a random one on."""
    if not document:
        return []
    return _flat(_chunk(document, generator.randrange(len(document)), max(1, length)))


def _shorten(first: list[int], second: list[int], longest: int, generator: random.Random) -> None:
    """Remove tokens from the longer segment, at either end, until both fit."""
    while len(first) + len(second) > longest:
        longer = first if len(first) > len(second) else second
        longer.pop(generator.choice((0, -1)))


def _flat(sentences: Sequence[Sentence]) -> list[int]:
    return [token for sentence in sentences for token in sentence]
