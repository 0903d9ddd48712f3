"""Byte-level BPE tokenizers of GPT-2's kind: downloaded, trained, opened, and loaded in each process.

The tokenizers package is imported by the functions that use it, since not every program here has it.
"""

from __future__ import annotations

import array
import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainkit.data.dataset_bucket import DatasetBucket
from trainkit.data.fetch import ensure_file
from trainkit.data.shards import ShardError, dtype_of, sha256_of
from trainkit.data.tokenize_unit import ARRAY_TYPES, Encode, Part
from trainkit.data.words import text_encoder
from trainkit.run.files import write_whole

if TYPE_CHECKING:
    from tokenizers import Tokenizer

END_OF_TEXT = "<|endoftext|>"
# The end of a text in other published tokenizers: Llama 3, Llama 2, DeepSeek.
ENDS = (END_OF_TEXT, "<|end_of_text|>", "</s>", "<\uff5cend\u2581of\u2581sentence\uff5c>")
GPT2_VOCAB_SIZE = 50257
# OpenAI's vocabulary and merges, with the checksums that tiktoken has recorded.
GPT2_SHA256 = {
    "encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    "vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
}


@dataclass(frozen=True)
class Bpe:
    """A tokenizer in one file (tokenizer.json) or in two: vocabulary and merges."""

    files: tuple[Path, ...]

    @property
    def sha256(self) -> str:
        """Checksum of the one file, or of the checksums of both."""
        sums = [sha256_of(file) for file in self.files]
        return sums[0] if len(sums) == 1 else hashlib.sha256("".join(sums).encode()).hexdigest()

    @property
    def vocab_size(self) -> int:
        """Number of tokens, including the end of text."""
        return int(self.open().get_vocab_size())

    @property
    def end_of_text(self) -> int:
        """Id of the end of text."""
        return _end_of(self.open())

    def open(self) -> Tokenizer:
        """Open the tokenizer; a special token's name in a text is read as text.

        Raises:
            ShardError: the file is not a tokenizer, or has no end of text.
        """
        from tokenizers import Tokenizer, pre_tokenizers  # noqa: PLC0415
        from tokenizers.models import BPE  # noqa: PLC0415

        first = self.files[0]
        try:
            if len(self.files) == 1:
                tokenizer = Tokenizer.from_file(str(first))
            else:
                tokenizer = Tokenizer(BPE.from_file(*map(str, self.files)))
                tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        except Exception as error:  # the library raises no narrower exception
            raise ShardError(
                f"{first} is not a tokenizer ({error}): replace it, and submit again."
            ) from error
        if all(tokenizer.token_to_id(name) is None for name in ENDS):
            raise ShardError(f"{first} has no end-of-text token, none of {', '.join(ENDS)}: use another.")
        tokenizer.encode_special_tokens = True
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    def load(self) -> Encode:
        """Return a function that converts documents to ids, with the end of text after each but Parts."""
        # Each core has a process, so threads of the library would only compete with them.
        os.environ.update(TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1")
        tokenizer = self.open()
        kind = ARRAY_TYPES[dtype_of(tokenizer.get_vocab_size())]

        def to_bytes(ids: Sequence[int]) -> bytes:
            return array.array(kind, ids).tobytes()

        ids_of, end = text_encoder(tokenizer, to_bytes), to_bytes([_end_of(tokenizer)])

        def encode(texts: list[str]) -> list[Sequence[int]]:
            ends = (b"" if isinstance(text, Part) else end for text in texts)
            return [array.array(kind, ids + last) for ids, last in zip(ids_of(texts), ends, strict=True)]

        return encode


def _end_of(tokenizer: Tokenizer) -> int:
    """Return the id of the end of text, which an opened tokenizer has."""
    return next(int(at) for name in ENDS if (at := tokenizer.token_to_id(name)) is not None)


def ensure_gpt2(bpe: Bpe, *, url: str, key: str, bucket: DatasetBucket | None) -> Bpe:
    """Use GPT-2's vocabulary and merges if they exist, or download them from the bucket or the web.

    Args:
        url: folder of the two files on the web; GPT2_BPE_URL replaces it.
        key: folder of the two files in the bucket.

    Raises:
        FetchError: a file cannot be downloaded, or is not the published one.
    """
    base = os.environ.get("GPT2_BPE_URL") or url
    for file, (name, sha256) in zip(bpe.files, GPT2_SHA256.items(), strict=True):
        ensure_file(file, url=f"{base}/{name}", key=f"{key}/{file.name}", bucket=bucket, sha256=sha256)
    return bpe


def train(bpe: Bpe, texts: Iterable[str], *, vocab_size: int) -> int:
    """Train a tokenizer, the same for the same text; return the number of its tokens."""
    from tokenizers import ByteLevelBPETokenizer  # noqa: PLC0415

    print(f"data: training a tokenizer of {vocab_size:,} tokens")
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(
        iter(texts), vocab_size=vocab_size, special_tokens=[END_OF_TEXT], show_progress=False
    )
    folder = bpe.files[0].parent
    folder.mkdir(parents=True, exist_ok=True)
    if len(bpe.files) == 1:
        write_whole(bpe.files[0], trained._tokenizer.to_str())
    else:
        for made, file in zip(trained.save_model(str(folder)), bpe.files, strict=True):
            Path(made).rename(file)
    return int(trained.get_vocab_size())
