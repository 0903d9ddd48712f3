"""Vocabulary of gpt2-megatron: GPT-2's own, or one trained on the text, in files with Megatron's names."""

from __future__ import annotations

from pathlib import Path

from trainkit.data.bpe import Bpe, ensure_gpt2
from trainkit.data.dataset_bucket import DatasetBucket

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
