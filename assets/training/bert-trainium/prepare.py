"""Sentence pairs of bert-trainium as shards, before its ranks start.

Called by prepare.sh, once a job. Environment: DATA_DIR, RUN_DIR; CORPUS (raw, machine), VOCAB_SIZE (of a
vocabulary trained here), BERT_CONTEXT, PREPARE_WORKERS (processes; all cores), VALIDATION_EVERY,
TRAINING_BUCKET.

The text: DATA_DIR/raw, or what exists on any machine. The vocabulary: DATA_DIR/raw/vocab.txt (that of
bert-base-uncased, say), or datasets/bert-trainium/vocab.txt of the bucket, else one trained on the text.
Writes $DATA_DIR/<corpus>-<vocabulary>-<context>/ (shards, manifest.json, tokenizer.json) and
$RUN_DIR/data.json: what train.py reads. Skips what is done, finishes what was interrupted; downloads from
the bucket what is there, and uploads what was made here.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from pairs import FORMAT, ROW_HEAD
from settings import Settings, read_settings
from trainkit.data import machine_text
from trainkit.data.dataset_bucket import BucketError, DatasetBucket
from trainkit.data.documents import (
    OWN,
    PATTERNS,
    Piece,
    documents_of,
    fingerprint_of,
    own_files,
    pieces_of,
    sample,
)
from trainkit.data.lifecycle import (
    check_space,
    ensure_shards,
    is_of_text,
    made_once,
    main,
    note_for_training,
    remaining_units,
    show_units,
    validation_share,
    worker_count,
)
from trainkit.data.prepare_tokens import prepare
from trainkit.data.shards import Manifest, ShardError, sha256_of
from trainkit.data.tokenize_unit import Recipe
from wordpiece import PairEncoder, from_vocabulary, open_tokenizer, special_of, train

WORKLOAD = "bert-trainium"
TOKENIZER, VOCABULARY = "tokenizer.json", "vocab.txt"
MACHINE = "machine"
# What BERT's alphabet and special tokens take; an id is two bytes in the files.
VOCAB_SIZES = range(300, 65_537)
# A row of 130 numbers holds about 500 characters, and few of them are padding.
SHARD_BYTES_A_TEXT_BYTE = 0.7


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """The text, vocabulary and split of a run."""

    data: Path
    corpus: str
    settings: Settings
    vocabulary: Path | None
    """A vocab.txt that was given."""
    validation_every: int
    workers: int

    @property
    def folder(self) -> Path:
        """The folder of the shards, which may not exist yet."""
        size = self.settings.vocab_size
        name = f"given-{sha256_of(self.vocabulary)[:8]}" if self.vocabulary else f"vocab-{size}"
        return self.data / f"{self.corpus}-{name}-{self.settings.bert_context}"

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the text; None if there is none."""
        if self.corpus == MACHINE:
            return machine_text.fingerprint()
        return fingerprint_of(own_files(self.data, without={VOCABULARY}))

    def fits(self, manifest: Manifest) -> bool:
        """Return True if shards are made of this text, in this way."""
        return is_of_text(manifest, self.fingerprint, validation_every=self.validation_every)


def run() -> None:
    """Prepare the shards, and note them for train.py."""
    data = Path(os.environ["DATA_DIR"])
    settings = read_settings([])
    corpus = os.environ.get("CORPUS") or OWN
    if corpus not in {OWN, MACHINE}:
        raise ShardError(f'CORPUS is "{corpus}"; allowed: {OWN}, {MACHINE}.')
    if settings.vocab_size not in VOCAB_SIZES:
        raise ShardError(
            f"VOCAB_SIZE is {settings.vocab_size}: give a number from {VOCAB_SIZES[0]} to {VOCAB_SIZES[-1]}."
        )
    bucket = DatasetBucket.of_workload(WORKLOAD) if corpus == OWN else None
    config = DataConfig(
        data=data,
        corpus=corpus,
        settings=settings,
        vocabulary=given_vocabulary(data, bucket) if corpus == OWN else None,
        validation_every=validation_share(20),
        workers=worker_count(),
    )
    row = settings.bert_context + ROW_HEAD
    ensure_shards(config, bucket, make=lambda: make(config), unit="pairs", unit_ids=row)
    note_for_training(shards=str(config.folder))


def given_vocabulary(data: Path, bucket: DatasetBucket | None) -> Path | None:
    """Find vocab.txt beside the user's text, or download it if the bucket has one."""
    file = data / OWN / VOCABULARY
    if not file.is_file() and bucket:
        try:
            if bucket.head(VOCABULARY):
                bucket.download(VOCABULARY, file)
        except BucketError as error:
            print(f"data: no {VOCABULARY} from the bucket: {error}", file=sys.stderr)
    return file if file.is_file() else None


def make(config: DataConfig) -> Manifest:
    """Read the text and write the shards."""
    pieces = units_of(config)
    show_units(pieces, workers=config.workers)
    config.folder.mkdir(parents=True, exist_ok=True)
    tokenizer_file = tokenizer_of(config, pieces)
    tokenizer = open_tokenizer(tokenizer_file)
    recipe = Recipe(
        folder=config.folder,
        units=pieces,
        read=documents_of,
        encoder=PairEncoder(tokenizer_file, config.settings.bert_context, config.validation_every),
        vocab_size=tokenizer.get_vocab_size(),
        tokenizer_sha256=sha256_of(tokenizer_file),
        source={
            "corpus": config.corpus,
            "fingerprint": config.fingerprint,
            "validation_every": config.validation_every,
            "context": config.settings.bert_context,
            "special": dataclasses.asdict(special_of(tokenizer)),
        },
        validation_every=config.validation_every,
        layout=layout_of(context=config.settings.bert_context),
    )
    size = sum(unit.size_bytes for unit in remaining_units(recipe))
    check_space(config.folder, size * SHARD_BYTES_A_TEXT_BYTE)
    return prepare(recipe, workers=config.workers)


def units_of(config: DataConfig) -> tuple[Piece, ...]:
    """Cut the corpus into pieces.

    Raises:
        ShardError: there is no text.
    """
    own = config.corpus == OWN
    files = (
        own_files(config.data, without={VOCABULARY}) if own else machine_text.gather(config.data / MACHINE)
    )
    pieces = tuple(piece for file in files for piece in pieces_of(file))
    if not pieces:
        raise ShardError(
            f"there is no text: put {PATTERNS} into {config.data / OWN}, or take the little that exists on "
            f"this machine, to see it run: CORPUS={MACHINE}."
        )
    return pieces


def layout_of(*, context: int) -> str:
    """Return the layout of the rows: other rows come out of the same text for another context."""
    return f"pairs {FORMAT} of {context}"


def tokenizer_of(config: DataConfig, pieces: tuple[Piece, ...]) -> Path:
    """Put tokenizer.json beside the shards: of the vocabulary given, or trained here, once for a text."""
    file, size = config.folder / TOKENIZER, config.settings.vocab_size
    if config.vocabulary:
        from_vocabulary(config.vocabulary, file)
        return file

    def train_on_pieces(to: Path) -> None:
        print(f"data: training a vocabulary of {size:,} tokens")
        train(sample(pieces), to, vocab_size=size)

    return made_once(file, f"{config.fingerprint} {size}\n", train_on_pieces)


if __name__ == "__main__":
    main(run)
