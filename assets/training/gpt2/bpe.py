"""The tokenizer: GPT-2's own where weights come with it, else one of its kind trained on the text."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from corpus import Reader
from trainkit.data.prepare_tokens import Encode, Unit
from trainkit.data.shards import ShardError
from trainkit.run.files import write_whole

if TYPE_CHECKING:
    from tokenizers import Tokenizer

END_OF_TEXT = "<|endoftext|>"
# A vocabulary does not get better with more text than this, and training it takes memory.
SAMPLE_CHARACTERS = 100_000_000
SAMPLE_UNITS = 8


@dataclass(frozen=True)
class Bpe:
    """A tokenizer.json, loaded in each process that tokenizes."""

    file: Path

    def load(self) -> Encode:
        """Documents to ids; what looks like a special token in a text is text."""
        # One process a core: threads of their own would only be in each other's way.
        os.environ.update(TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1")
        tokenizer = open_tokenizer(self.file)
        end = tokenizer.token_to_id(END_OF_TEXT)

        def encode(texts: list[str]) -> list[Sequence[int]]:
            found = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
            return [[*each.ids, end] for each in found]

        return encode


def open_tokenizer(file: Path) -> Tokenizer:
    """Read a tokenizer.json.

    Raises:
        ShardError: it is none, or has no end of text.
    """
    from tokenizers import Tokenizer  # noqa: PLC0415 (tests of other parts have no such package)

    try:
        tokenizer: Tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises nothing narrower
        raise ShardError(f"{file} is no tokenizer ({error}): replace it, and submit again.") from error
    if tokenizer.token_to_id(END_OF_TEXT) is None:
        raise ShardError(f"{file} has no token {END_OF_TEXT}, so it is not GPT-2's kind: take another.")
    tokenizer.encode_special_tokens = True
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def train_bpe(
    units: Sequence[Unit], file: Path, *, vocab_size: int, say: Callable[[str], None] = print
) -> None:
    """Train a tokenizer on some of the text, and write it whole; the same text gives the same one."""
    from tokenizers import ByteLevelBPETokenizer  # noqa: PLC0415

    say(f"data: training a tokenizer of {vocab_size:,} tokens")
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(
        sample(units), vocab_size=vocab_size, special_tokens=[END_OF_TEXT], show_progress=False
    )
    write_whole(file, trained._tokenizer.to_str())


def sample(units: Sequence[Unit], *, characters: int = SAMPLE_CHARACTERS) -> Iterator[str]:
    """The beginnings of a few units, spread over the corpus: all of a small one."""
    step = max(1, len(units) // SAMPLE_UNITS)
    chosen = list(itertools.islice(units[::step], SAMPLE_UNITS)) if len(units) > SAMPLE_UNITS else units
    for unit in chosen:
        left = characters // len(chosen)
        for text, _ in Reader()(unit):
            yield text
            left -= len(text)
            if left <= 0:
                break
