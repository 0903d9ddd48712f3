"""Generated text: words of syllables, as frequent as words in a language; always the same."""

import json
import random
from itertools import accumulate
from pathlib import Path

_SEED = 1
_WORDS = 30_000
_SYLLABLES = tuple(
    onset + vowel + coda
    for onset in ("", "b", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "st", "t", "v", "w")
    for vowel in ("a", "e", "i", "o", "u", "ea")
    for coda in ("", "n", "r", "s", "t")
)
_SENTENCES_A_PARAGRAPH, _PARAGRAPHS_A_DOCUMENT = 5, 4


def write(folder: Path, *, size_bytes: int, files: int) -> int:
    """Write the same text twice, as JSON lines (one per document) and as plain text (a line per paragraph).

    The plain text has an empty line after each document. Returns the bytes of the plain text, which are
    `size_bytes` plus at most one document per file.
    """
    folder.mkdir(parents=True)
    made = _Words()
    total = 0
    for number in range(files):
        plain, lines = folder / f"{number}.txt", folder / f"{number}.jsonl"
        with plain.open("w", encoding="utf-8") as text, lines.open("w", encoding="utf-8") as documents:
            written = 0
            while written < size_bytes // files:
                document = made.document()
                written += text.write(f"{document}\n\n")
                documents.write(json.dumps({"text": document}) + "\n")
        total += plain.stat().st_size
    return total


class _Words:
    """Words of which the n-th is 1/n as frequent as the first (Zipf)."""

    def __init__(self) -> None:
        self._random = random.Random(_SEED)  # noqa: S311  # no secret
        self._words = [
            "".join(self._random.choices(_SYLLABLES, k=1 + number % 4)) for number in range(_WORDS)
        ]
        self._weights = list(accumulate(1 / rank for rank in range(1, _WORDS + 1)))

    def document(self) -> str:
        """Return a document of a few paragraphs."""
        return "\n".join(self._paragraph() for _ in range(_PARAGRAPHS_A_DOCUMENT))

    def _paragraph(self) -> str:
        words = self._random.choices(self._words, cum_weights=self._weights, k=_SENTENCES_A_PARAGRAPH * 14)
        size = len(words) // _SENTENCES_A_PARAGRAPH
        sentences = (" ".join(words[at : at + size]) for at in range(0, len(words), size))
        return " ".join(f"{each.capitalize()}." for each in sentences)
