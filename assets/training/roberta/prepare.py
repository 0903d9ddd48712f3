"""Text to fairseq's binary data for roberta: the output of its encoder and fairseq-preprocess, in one pass.

Called by prepare.sh, once a job. Environment: DATA_DIR, RUN_DIR; CORPUS (wikitext-103; machine: text that
exists on any machine; raw: your own files in DATA_DIR/raw, the default if there are any), VOCAB_SIZE (50257:
GPT-2's BPE; another: a BPE trained on the text), PREPARE_WORKERS (processes; all cores), WIKITEXT_URL,
GPT2_BPE_URL, TRAINING_BUCKET.

Writes $DATA_DIR/<corpus>-vocab-<n>/ (token shards, the BPE, dict.txt, and in fairseq/ dict.txt, *.bin and
*.idx), $DATA_DIR/raw/ for what it fetched, and $RUN_DIR/data.json: what train.py reads. Skips what is done,
finishes what was interrupted; downloads from the bucket what is there, and uploads what was made here.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import line_bpe
import wikitext
from fairseq_format import END, Numbering, read_numbering
from line_bpe import BPE_FOLDER, FairseqBpe
from lines import LineEncoder, read_lines, training_lines
from settings import DATA_FOLDER, DICTIONARY, SPECIAL_SYMBOLS, read_settings
from trainkit.data.bpe import GPT2_VOCAB_SIZE
from trainkit.data.dataset_bucket import DatasetBucket
from trainkit.data.documents import OWN, own_files
from trainkit.data.indexed import make_indexed
from trainkit.data.lifecycle import main, note_for_training, prepare_workers
from trainkit.data.shards import Manifest, ShardError, read_manifest
from trainkit.data.text_shards import TextShards
from trainkit.data.tokenize_unit import Recipe, Unit

# Every 20th document (5 %) of a text without its own split is for validation.
VALIDATION_EVERY = 20
SPLITS = {"train": "train", "val": "valid", "test": "test"}
"""fairseq's names of the splits."""


@dataclass(frozen=True, kw_only=True)
class Lines(TextShards):
    """The shards of a text: fairseq's numbers of its lines."""

    not_text: ClassVar[frozenset[str]] = frozenset({BPE_FOLDER})
    bucket: DatasetBucket | None

    @property
    def fingerprint(self) -> str | None:
        """A string that changes with the text; None if there is none."""
        return wikitext.SHA256 if self.name == wikitext.CORPUS else super().fingerprint

    @property
    def own_bpe(self) -> FairseqBpe:
        """The BPE of the shards, beside them."""
        return FairseqBpe(self.folder)

    def make(self) -> Manifest:
        """Read the text and write the shards."""
        if self.name == OWN:
            self.units()  # a missing text is refused before anything is downloaded
        # The threads that train a BPE.
        os.environ.setdefault("RAYON_NUM_THREADS", str(prepare_workers()))
        if self.vocab_size == GPT2_VOCAB_SIZE:
            # The small files first, so that an error in them is reported at once.
            line_bpe.gpt2(self.data / OWN, self.bucket)
        return super().make()

    def units(self) -> tuple[Unit, ...]:
        """List the units of the text in a fixed order."""
        if self.name == wikitext.CORPUS:
            return wikitext.units(wikitext.have_zip(self.data / OWN, self.bucket))
        return super().units()

    def recipe(self, units: tuple[Unit, ...]) -> Recipe:
        """Return the inputs of the shards, with GPT-2's BPE or one that is trained on the text."""
        bpe = self.own_bpe
        if self.vocab_size == GPT2_VOCAB_SIZE:
            published = line_bpe.gpt2(self.data / OWN, self.bucket)
            for file, own in zip(published.files, bpe.files, strict=True):
                shutil.copyfile(file, own)
        else:
            self.train_once(
                bpe.dictionary,
                lambda: line_bpe.train(bpe, training_lines(units, VALIDATION_EVERY), self.vocab_size),
            )
        symbols, numbering = bpe.check_dictionary() + SPECIAL_SYMBOLS, read_numbering(bpe.dictionary)
        return self.recipe_with(
            LineEncoder(bpe.bpe, numbering.indices),
            units,
            vocab_size=symbols,
            tokenizer_sha256=numbering.sha256(bpe.bpe),
            source={"symbols": symbols},
            read=read_lines,
        )


def shards_of_run(bucket: DatasetBucket | None) -> Lines:
    """Return the shards that the settings name."""
    settings, data = read_settings(), Path(os.environ["DATA_DIR"])
    return Lines(
        data=data,
        name=settings.corpus or (OWN if own_files(data, without=Lines.not_text) else wikitext.CORPUS),
        vocab_size=settings.vocab_size,
        validation_every=VALIDATION_EVERY,
        bucket=bucket,
    )


def numbering_of(bpe: FairseqBpe, manifest: Manifest) -> Numbering:
    """Read the numbering beside shards.

    Raises:
        ShardError: a file of the BPE or the dictionary is missing, or is not what the shards were made with.
    """
    again = f"remove {bpe.folder}, and submit again."
    try:
        numbering = read_numbering(bpe.dictionary)
        if numbering.sha256(bpe.bpe) == manifest.tokenizer_sha256:
            return numbering
    except OSError as error:
        raise ShardError(f"{error}: {again}") from error
    raise ShardError(f"{bpe.folder} has another BPE or {DICTIONARY} than its shards were made with: {again}")


def run() -> None:
    """Find, download or make the shards and fairseq's files of them, and record them for train.py."""
    bucket = DatasetBucket.of_workload("roberta")
    shards = shards_of_run(bucket)
    folder = shards.ensure(bucket)
    manifest = read_manifest(folder)
    tokens = {split: manifest.tokens(split) for split in manifest.splits}
    if not all(tokens.values()):
        raise ShardError(f"the text is too short to train on ({tokens}): put more into {shards.texts}.")
    numbering = numbering_of(shards.own_bpe, manifest)
    make_indexed(
        folder / DATA_FOLDER,
        splits=SPLITS,
        end=END,
        dtype=numbering.dtype,
        documents=False,
        noted={"symbols": manifest.source["symbols"]},
        others={DICTIONARY: numbering.dictionary.encode()},
    )
    note_for_training(shards=str(folder), **shards.note())


if __name__ == "__main__":
    main(run)
