"""The tokenizer: a tokenizer.json that is given (TOKENIZER), or a byte-level BPE trained on the text."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from text import File, documents_of
from trainkit.data.shards import ShardError
from trainkit.data.tokenize_unit import Encode
from trainkit.run.files import write_whole

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# The end of a text, in Llama 3, GPT-2 and Llama 2.
ENDS = ("<|end_of_text|>", "<|endoftext|>", "</s>")
# A vocabulary does not get better with more text than this, and training it takes memory.
SAMPLE_CHARACTERS = 100_000_000


@dataclass(frozen=True)
class Encoder:
    """A tokenizer.json, loaded in each process that tokenizes."""

    file: Path

    def load(self) -> Encode:
        """Return a function from documents to ids, the end of text behind each; special tokens are text."""
        # One process a core: threads of their own would only be in each other's way.
        os.environ.update(TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1")
        tokenizer = open_tokenizer(self.file)
        end = end_of_text(tokenizer)

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
        raise ShardError(
            f"{file} is no tokenizer.json ({error}): give another (TOKENIZER), or none."
        ) from error
    end_of_text(tokenizer)
    tokenizer.encode_special_tokens = True
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def end_of_text(tokenizer: Tokenizer) -> int:
    """Return the id of the end of a text.

    Raises:
        ShardError: the tokenizer has none that is known here.
    """
    for name in ENDS:
        if (found := tokenizer.token_to_id(name)) is not None:
            return int(found)
    raise ShardError(
        f"the tokenizer has no end of text, none of {', '.join(ENDS)}: give another (TOKENIZER)."
    )


def train(units: Sequence[File], file: Path, *, vocab_size: int, say: Callable[[str], None] = print) -> None:
    """Train a tokenizer on some of the text, and write it whole; the same text gives the same one."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: PLC0415

    say(f"data: training a tokenizer of {vocab_size:,} tokens")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[ENDS[0]],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sample(units), trainer)
    write_whole(file, tokenizer.to_str())


def sample(units: Sequence[File], *, characters: int = SAMPLE_CHARACTERS) -> Iterator[str]:
    """Read the beginnings of all files: all of a small corpus."""
    for unit in units:
        left = characters // len(units)
        for text, _ in documents_of(unit):
            yield text
            left -= len(text)
            if left <= 0:
                break
