"""The BPE of roberta with fairseq's dictionary: GPT-2's, or one trained on the text.

Its ids equal the ids of fairseq's own multiprocessing_bpe_encoder (a test compares them), from the tokenizers
library, which is much faster.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from settings import DICTIONARY
from trainkit.data.bpe import Bpe, ensure_gpt2
from trainkit.data.bpe import train as train_bpe
from trainkit.data.dataset_bucket import DatasetBucket
from trainkit.data.fetch import ensure_file
from trainkit.data.shards import ShardError
from trainkit.run.files import write_whole

ENCODER, MERGES = "encoder.json", "vocab.bpe"
# fairseq's site has OpenAI's files and the dictionary.
BPE_FOLDER = "gpt2_bpe"
URL = "https://dl.fbaipublicfiles.com/fairseq/gpt2_bpe"


@dataclass(frozen=True)
class FairseqBpe:
    """A folder with encoder.json, vocab.bpe and dict.txt."""

    folder: Path

    @property
    def bpe(self) -> Bpe:
        """Tokenizer without the dictionary."""
        return Bpe((self.folder / ENCODER, self.folder / MERGES))

    @property
    def dictionary(self) -> Path:
        """File of fairseq's symbols, one on each line."""
        return self.folder / DICTIONARY

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of the tokenizer, and the dictionary."""
        return (*self.bpe.files, self.dictionary)

    def check_dictionary(self) -> int:
        """Count the symbols of dict.txt, which must have each id of the encoder once.

        Raises:
            ShardError: dict.txt belongs to another encoder.
        """
        encoder: dict[str, int] = json.loads((self.folder / ENCODER).read_text(encoding="utf-8"))
        entries = [line.split()[0] for line in self.dictionary.read_text(encoding="utf-8").splitlines()]
        ids = [entry for entry in entries if entry.isdecimal()]
        if len(entries) != len(set(entries)) or set(ids) != {str(number) for number in encoder.values()}:
            raise ShardError(
                f"{self.dictionary} does not belong to {ENCODER} beside it ({len(encoder):,} ids; it has "
                f"{len(set(ids)):,}): bring those that belong together, or remove both, and submit again."
            )
        return len(entries)


def gpt2(raw: Path, bucket: DatasetBucket | None) -> FairseqBpe:
    """Find or download GPT-2's BPE and its dictionary in DATA_DIR/raw/gpt2_bpe (GPT2_BPE_URL).

    Raises:
        FetchError: a file cannot be downloaded, or is not the published one.
    """
    found, key = FairseqBpe(raw / BPE_FOLDER), f"raw/{BPE_FOLDER}"
    ensure_gpt2(found.bpe, url=URL, key=key, bucket=bucket)
    url = f"{os.environ.get('GPT2_BPE_URL') or URL}/{DICTIONARY}"
    # The checksum of dict.txt is not published; check_dictionary reads it instead.
    ensure_file(found.dictionary, url=url, key=f"{key}/{DICTIONARY}", bucket=bucket)
    return found


def train(bpe: FairseqBpe, lines: Iterable[str], vocab_size: int) -> None:
    """Train a BPE of the same kind on the lines of a text."""
    size = train_bpe(bpe.bpe, lines, vocab_size=vocab_size)
    # fairseq selects words by these counts, which does not apply to ids of a BPE.
    write_whole(bpe.dictionary, "".join(f"{number} 1\n" for number in range(size)))
