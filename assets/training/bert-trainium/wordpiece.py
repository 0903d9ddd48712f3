"""The WordPiece vocabulary: BERT's own (a vocab.txt) if it exists, else one trained on the text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pairs import Special, cut, rows_of, sentences
from trainkit.data.shards import ShardError
from trainkit.data.tokenize_unit import Encode
from trainkit.run.files import write_whole

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@dataclass(frozen=True)
class PairEncoder:
    """An encoder of documents into rows of sentence pairs, created in each process."""

    file: Path
    context: int

    def load(self) -> Encode:
        """Return a function that converts documents to the numbers of their rows."""
        # Each core has a process, so threads would only compete.
        os.environ.update(TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1")
        tokenizer = open_tokenizer(self.file)
        special = special_of(tokenizer)

        def encode(texts: list[str]) -> list[Sequence[int]]:
            documents = [
                cut(
                    [
                        each.ids
                        for each in tokenizer.encode_batch_fast(sentences(text), add_special_tokens=False)
                    ],
                    self.context // 2,
                )
                for text in texts
            ]
            return list(rows_of(documents, context=self.context, special=special))

        return encode


def open_tokenizer(file: Path) -> Tokenizer:
    """Read a tokenizer.json.

    Raises:
        ShardError: the file is not a tokenizer, or lacks BERT's special tokens.
    """
    from tokenizers import Tokenizer  # noqa: PLC0415 (tests of other parts have no such package)

    try:
        tokenizer: Tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises no narrower exception
        raise ShardError(f"{file} is not a tokenizer ({error}): remove it, and submit again.") from error
    special_of(tokenizer)
    # A special token's name in a text is ordinary text.
    tokenizer.encode_special_tokens = True
    return tokenizer


def special_of(tokenizer: Tokenizer) -> Special:
    """Return the ids of the special tokens. Raises ShardError: a special token is missing."""
    ids = [tokenizer.token_to_id(token) for token in SPECIAL_TOKENS]
    if missing := [token for token, found in zip(SPECIAL_TOKENS, ids, strict=True) if found is None]:
        raise ShardError(
            f"the vocabulary has no {', '.join(missing)}, so it is not a BERT vocabulary: replace it."
        )
    return Special(*ids)


def from_vocabulary(vocabulary: Path, file: Path) -> None:
    """Make tokenizer.json from a vocab.txt: one token per line, whose number is the token's id.

    Raises:
        ShardError: it is not a BERT vocabulary.
    """
    from tokenizers import BertWordPieceTokenizer  # noqa: PLC0415

    tokens = vocabulary.read_text(encoding="utf-8").splitlines()
    if len(set(tokens)) != len(tokens):
        raise ShardError(f"{vocabulary} has a token twice, so ids would be wrong: replace it.")
    made = BertWordPieceTokenizer({token: number for number, token in enumerate(tokens)}, lowercase=True)
    try:
        special_of(made._tokenizer)
    except ShardError as error:
        raise ShardError(f"{vocabulary}: {error}") from error
    write_whole(file, made._tokenizer.to_str())


def train(texts: Iterable[str], file: Path, *, vocab_size: int) -> None:
    """Train WordPiece on texts and write it whole; two trainings may differ in equally good pairs."""
    from tokenizers import BertWordPieceTokenizer  # noqa: PLC0415

    made = BertWordPieceTokenizer(lowercase=True)
    made.train_from_iterator(
        texts, vocab_size=vocab_size, special_tokens=list(SPECIAL_TOKENS), show_progress=False
    )
    write_whole(file, made._tokenizer.to_str())
