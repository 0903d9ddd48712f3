"""Vocabulary of gpt2-megatron: GPT-2's own, or one trained on the text, in files with Megatron's names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from trainkit.data.bpe import Bpe, ensure_gpt2, train
from trainkit.data.dataset_bucket import DatasetBucket
from trainkit.run.files import write_whole

URL = "https://openaipublic.blob.core.windows.net/gpt-2/encodings/main"


def bpe_of(folder: Path) -> Bpe:
    """Return the tokenizer of a folder, which may have no files yet."""
    return Bpe((folder / "gpt2-vocab.json", folder / "gpt2-merges.txt"))


def bpe_of_shards(shards: Path) -> Bpe:
    """Return the tokenizer with which shards were made."""
    own = shards / "vocabulary"
    return bpe_of(own if own.is_dir() else shards.parent / "gpt2")


def gpt2(folder: Path, bucket: DatasetBucket | None) -> Bpe:
    """Find or download GPT-2's tokenizer (GPT2_BPE_URL).

    Raises:
        FetchError: a file cannot be downloaded, or is not the published one.
    """
    return ensure_gpt2(bpe_of(folder), url=URL, key="gpt2", bucket=bucket)


def train_bpe(folder: Path, texts: Iterable[str], *, vocab_size: int, made_of: str) -> Bpe:
    """Train a tokenizer, unless the folder has one that was trained on the same text."""
    note, bpe = folder / "made-of", bpe_of(folder)
    if not (note.is_file() and note.read_text(encoding="utf-8") == made_of):
        train(bpe, texts, vocab_size=vocab_size)
        write_whole(note, made_of)
    return bpe
