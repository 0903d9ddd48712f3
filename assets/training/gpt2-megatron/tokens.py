"""Documents -> tokens: GPT-2's own vocabulary, or one of its kind trained on the text."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainkit.data.dataset_bucket import DatasetBucket
from trainkit.data.fetch import ensure_file
from trainkit.data.prepare_tokens import Encode
from trainkit.run.files import write_whole

if TYPE_CHECKING:
    from tokenizers.implementations import ByteLevelBPETokenizer

END_OF_TEXT = "<|endoftext|>"
GPT2_VOCAB_SIZE = 50257
URL = "https://openaipublic.blob.core.windows.net/gpt-2/encodings/main"
# What Megatron calls them, what OpenAI does, and the sums that tiktoken has recorded.
FILES = {
    "gpt2-vocab.json": ("encoder.json", "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783"),
    "gpt2-merges.txt": ("vocab.bpe", "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5"),
}
VOCAB, MERGES = FILES
# A vocabulary does not get better with more text than this, and training it takes memory.
SAMPLE_CHARACTERS = 100_000_000


@dataclass(frozen=True)
class Bpe:
    """A folder with gpt2-vocab.json and gpt2-merges.txt, loaded in each process that tokenizes."""

    folder: Path

    def open(self) -> ByteLevelBPETokenizer:
        """The tokenizer; what looks like the end of text in a text is text."""
        from tokenizers import ByteLevelBPETokenizer  # noqa: PLC0415 (the rest of this file needs no package)

        return ByteLevelBPETokenizer.from_file(str(self.folder / VOCAB), str(self.folder / MERGES))

    @property
    def end_of_text(self) -> int:
        """Its id."""
        return int(self.open().get_vocab()[END_OF_TEXT])

    @property
    def vocab_size(self) -> int:
        """Tokens, the end of text among them."""
        return int(self.open().get_vocab_size())

    def load(self) -> Encode:
        """Documents to ids, the end of text behind each."""
        # One process a core: threads of their own would only be in each other's way.
        os.environ.update(TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1")
        tokenizer, end = self.open(), self.end_of_text

        def encode(texts: list[str]) -> list[Sequence[int]]:
            return [[*each.ids, end] for each in tokenizer.encode_batch(texts)]

        return encode


def gpt2(folder: Path, bucket: DatasetBucket | None) -> Bpe:
    """GPT-2's two files: as they lie there, from the bucket, or the web (GPT2_BPE_URL).

    Raises:
        ShardError: a file cannot be had, or is another.
    """
    base = os.environ.get("GPT2_BPE_URL") or URL
    for name, (there, sha256) in FILES.items():
        ensure_file(folder / name, url=f"{base}/{there}", sha256=sha256, key=f"gpt2/{name}", bucket=bucket)
    return Bpe(folder)


def train_bpe(folder: Path, texts: Iterator[str], *, vocab_size: int, made_of: str) -> Bpe:
    """A BPE of the same kind, of the text's own words; the same text gives the same one."""
    from tokenizers import ByteLevelBPETokenizer  # noqa: PLC0415

    note = folder / "made-of"
    if not (note.is_file() and note.read_text(encoding="utf-8") == made_of):
        print(f"data: training a vocabulary of {vocab_size:,} tokens")
        folder.mkdir(parents=True, exist_ok=True)
        trained = ByteLevelBPETokenizer()
        trained.train_from_iterator(
            sample(texts), vocab_size=vocab_size, special_tokens=[END_OF_TEXT], show_progress=False
        )
        vocabulary, merges = trained.save_model(str(folder))
        Path(vocabulary).rename(folder / VOCAB)
        Path(merges).rename(folder / MERGES)
        write_whole(note, made_of)
    return Bpe(folder)


def sample(texts: Iterator[str], *, characters: int = SAMPLE_CHARACTERS) -> Iterator[str]:
    """The first texts, up to so many characters."""
    for text in texts:
        yield text
        characters -= len(text)
        if characters <= 0:
            return
