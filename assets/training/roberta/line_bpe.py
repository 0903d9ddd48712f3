"""The BPE: GPT-2's, or one trained on the text.

Its ids are those of fairseq's own multiprocessing_bpe_encoder (a test compares them), from the tokenizers
library, which is much faster.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from binary_data import DICTIONARY, ENCODER, MERGES, DataError
from trainkit.data.dataset_bucket import DatasetBucket
from trainkit.data.fetch import ensure_file
from trainkit.run.files import write_whole

if TYPE_CHECKING:
    from tokenizers import Tokenizer

URL = "https://dl.fbaipublicfiles.com/fairseq/gpt2_bpe"
# OpenAI's files, as tiktoken has recorded their sums; dict.txt is fairseq's, and is looked into instead.
SHA256 = {
    ENCODER: "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    MERGES: "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
}
END_OF_TEXT = "<|endoftext|>"


@dataclass(frozen=True)
class Bpe:
    """A folder with encoder.json, vocab.bpe and dict.txt."""

    folder: Path

    @property
    def dictionary(self) -> Path:
        """fairseq's: a line a symbol."""
        return self.folder / DICTIONARY

    def tokenizer(self) -> Tokenizer:
        """Encodes in the thread that calls it; what looks like the end of text in a text is text."""
        # Threads of its own would only be in the way of encoding.py's.
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        # The rest of this file needs no package.
        from tokenizers import Tokenizer, pre_tokenizers  # noqa: PLC0415
        from tokenizers.models import BPE  # noqa: PLC0415

        tokenizer = Tokenizer(BPE.from_file(str(self.folder / ENCODER), str(self.folder / MERGES)))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        return tokenizer

    def check_dictionary(self) -> int:
        """How many symbols dict.txt has; each id of the encoder has to be there, once.

        Raises:
            DataError: dict.txt belongs to another encoder.
        """
        encoder: dict[str, int] = json.loads((self.folder / ENCODER).read_text(encoding="utf-8"))
        entries = [line.split()[0] for line in self.dictionary.read_text(encoding="utf-8").splitlines()]
        ids = [entry for entry in entries if entry.isdecimal()]
        if len(entries) != len(set(entries)) or set(ids) != {str(number) for number in encoder.values()}:
            raise DataError(
                f"{self.dictionary} does not belong to {ENCODER} beside it ({len(encoder):,} ids; it has "
                f"{len(set(ids)):,}): bring those that belong together, or remove both, and submit again."
            )
        return len(entries)


def gpt2(raw: Path, bucket: DatasetBucket | None) -> Bpe:
    """GPT-2's BPE in DATA_DIR/raw/gpt2_bpe: as it lies there, from the bucket, or the web (GPT2_BPE_URL).

    Raises:
        DataError: a file cannot be had, or is another.
    """
    folder = raw / "gpt2_bpe"
    base = os.environ.get("GPT2_BPE_URL") or URL
    for name in (ENCODER, MERGES, DICTIONARY):
        key = f"raw/gpt2_bpe/{name}"
        ensure_file(folder / name, url=f"{base}/{name}", key=key, bucket=bucket, sha256=SHA256.get(name))
    return Bpe(folder)


def train(folder: Path, lines: Iterable[str], *, vocab_size: int) -> Bpe:
    """A BPE of the same kind, of the text's own words."""
    from tokenizers import ByteLevelBPETokenizer  # noqa: PLC0415

    bpe = Bpe(folder)
    if bpe.dictionary.is_file():
        return bpe
    folder.mkdir(parents=True, exist_ok=True)
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(
        iter(lines), vocab_size=vocab_size, special_tokens=[END_OF_TEXT], show_progress=False
    )
    vocabulary, merges = trained.save_model(str(folder))
    Path(vocabulary).rename(folder / ENCODER)
    Path(merges).rename(folder / MERGES)
    # The counts are for choosing words by how often they come, which BPE ids do not need.
    write_whole(bpe.dictionary, "".join(f"{number} 1\n" for number in range(trained.get_vocab_size())))
    return bpe
