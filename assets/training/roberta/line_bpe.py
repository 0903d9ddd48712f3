"""Text -> lines of BPE ids, as fairseq-preprocess wants them: GPT-2's BPE, or one trained on the text.

A line of text becomes a line of ids, an empty one an empty one (the end of a document). The ids are those of
fairseq's own multiprocessing_bpe_encoder (a test compares them), from the tokenizers library, which is much
faster.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from binary_data import DICTIONARY, ENCODER, MERGES, DataError
from training_common.dataset_bucket import DatasetBucket
from training_common.files import sync, write_whole
from wikitext import have_file

if TYPE_CHECKING:
    from tokenizers.implementations import ByteLevelBPETokenizer

URL = "https://dl.fbaipublicfiles.com/fairseq/gpt2_bpe"
# OpenAI's files, as tiktoken has recorded their sums; dict.txt is fairseq's, and is looked into instead.
SHA256 = {
    ENCODER: "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    MERGES: "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
}
END_OF_TEXT = "<|endoftext|>"
# What is encoded in one go: bounds the memory.
BATCH_LINES = 4096
# How much text may be encoded again after an interruption.
NOTE_EVERY_BATCHES = 16
PROGRESS_EVERY_S = 10.0


@dataclass(frozen=True)
class Bpe:
    """A folder with encoder.json, vocab.bpe and dict.txt."""

    folder: Path

    @property
    def dictionary(self) -> Path:
        """fairseq's: a line a symbol."""
        return self.folder / DICTIONARY

    def tokenizer(self) -> ByteLevelBPETokenizer:
        """Encodes in as many threads as RAYON_NUM_THREADS says."""
        from tokenizers import ByteLevelBPETokenizer  # noqa: PLC0415 (the rest of this file needs no package)

        return ByteLevelBPETokenizer.from_file(str(self.folder / ENCODER), str(self.folder / MERGES))

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
        have_file(folder / name, url=f"{base}/{name}", sha256=SHA256.get(name), bucket=bucket)
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


def encode(lines: Iterator[str], to: Path, *, bpe: Bpe, name: str, total_bytes: int) -> int:
    """Write lines of ids; how many tokens they are, the end of each line one of them.

    An interrupted file is taken up again behind the batch that was noted last.
    """
    if to.is_file():
        return _note(to)["tokens"]
    partial = to.with_name(f"{to.name}.partial")
    done = _note(partial) if partial.is_file() else {"lines": 0, "bytes": 0, "text": 0, "tokens": 0}
    tokenizer, started, said = bpe.tokenizer(), time.monotonic(), time.monotonic()
    first = done["text"]
    rest = itertools.islice(lines, done["lines"], None)
    with partial.open("ab") as file:
        file.truncate(done["bytes"])
        for number in itertools.count(1):
            batch = list(itertools.islice(rest, BATCH_LINES))
            encodings = tokenizer.encode_batch([line.strip() for line in batch])
            rows = [" ".join(map(str, encoding.ids)) + "\n" for encoding in encodings]
            file.write("".join(rows).encode())
            done["lines"] += len(batch)
            done["text"] += sum(len(line.encode()) for line in batch)
            done["tokens"] += sum(len(encoding.ids) + 1 for encoding in encodings)
            if not batch or number % NOTE_EVERY_BATCHES == 0:
                file.flush()
                done["bytes"] = file.tell()
                sync(partial)
                write_whole(_note_file(partial), json.dumps(done) + "\n")
            if not batch or time.monotonic() - said > PROGRESS_EVERY_S:
                said = time.monotonic()
                print(_progress(name, done["text"], total_bytes, (done["text"] - first) / (said - started)))
            if not batch:
                break
    write_whole(_note_file(to), json.dumps(done) + "\n")
    partial.rename(to)
    return done["tokens"]


def _progress(name: str, done: int, total: int, bytes_per_s: float) -> str:
    remaining = max(0, total - done) / bytes_per_s if bytes_per_s else 0
    return (
        f"data: {name}, {done / 1e6:,.1f} of {total / 1e6:,.1f} MB encoded, {bytes_per_s / 1e6:,.1f} MB/s, "
        f"{remaining:.0f} s to go"
    )


def _note_file(encoded: Path) -> Path:
    return encoded.with_name(f"{encoded.name}.json")


def _note(encoded: Path) -> dict[str, int]:
    file = _note_file(encoded)
    found: dict[str, int] = (
        json.loads(file.read_text(encoding="utf-8"))
        if file.is_file()
        else {"lines": 0, "bytes": 0, "text": 0, "tokens": 0}
    )
    return found
