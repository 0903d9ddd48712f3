"""Sentence pairs of bert-trainium as shards, before its ranks start.

Called by prepare.sh, once a job. Environment: DATA_DIR, RUN_DIR; CORPUS (corpus.py), WIKIPEDIA_EDITION
(date and language of its articles: 20231101.en), VOCAB_SIZE, BERT_CONTEXT, PREPARE_WORKERS (processes; all
cores), VALIDATION_EVERY, TRAINING_BUCKET; HF_ENDPOINT, HF_TOKEN (trainkit/data/hub.py).

The vocabulary: DATA_DIR/raw/vocab.txt, or datasets/bert-trainium/vocab.txt of the bucket, or
bert-base-uncased's for English Wikipedia, else one of VOCAB_SIZE tokens that is trained on the text.
Writes $DATA_DIR/<corpus>-<vocabulary>-<context>/ (shards, manifest.json, tokenizer.json),
$DATA_DIR/downloads/ and $RUN_DIR/data.json: what train.py reads. Skips what is done, finishes what was
interrupted; downloads from the bucket what is there, and uploads what was made here.
"""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path

import corpus
from corpus import Vocabulary
from pairs import FORMAT, ROW_HEAD
from settings import MACHINE, VALIDATION_EVERY_ALLOWED, Settings, read_settings
from trainkit.data.dataset_bucket import DatasetBucket
from trainkit.data.documents import sample
from trainkit.data.hub_text import WIKIPEDIA_EDITION, fetched_documents, space_of, wikipedia_text
from trainkit.data.lifecycle import (
    check_space,
    have_shards,
    is_made_of,
    is_of_text,
    main,
    note_for_training,
    note_made_of,
    remaining_units,
    show_units,
    whole_number,
    worker_count,
)
from trainkit.data.prepare_tokens import prepare
from trainkit.data.shards import Manifest, sha256_of
from trainkit.data.tokenize_unit import Recipe, Unit
from wordpiece import PairEncoder, from_vocabulary, open_tokenizer, special_of, train

WORKLOAD = "bert-trainium"
TOKENIZER = "tokenizer.json"
# A row of 130 numbers holds about 500 characters, and few of them are padding.
SHARD_BYTES_A_TEXT_BYTE = 0.7
VALIDATION_EVERY = 20


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """The text, vocabulary and split of a run."""

    data: Path
    corpus: str
    settings: Settings
    vocabulary: Vocabulary | None
    """The user's or the published vocabulary."""
    validation_every: int
    workers: int

    @property
    def folder(self) -> Path:
        """The folder of the shards, which may not exist yet."""
        size = self.settings.vocab_size
        name = f"given-{self.vocabulary.sha256[:8]}" if self.vocabulary else f"vocab-{size}"
        return self.data / f"{self.corpus}-{name}-{self.settings.bert_context}"

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the text; None if there is none."""
        return corpus.fingerprint(self.corpus, data=self.data)

    def fits(self, manifest: Manifest) -> bool:
        """Return True if shards are made of this text, in this way."""
        return is_of_text(manifest, self.fingerprint, validation_every=self.validation_every)


def run() -> None:
    """Prepare the shards, and record them for train.py."""
    data = Path(os.environ["DATA_DIR"])
    settings = read_settings([])
    name = corpus.choose(
        os.environ.get("CORPUS", ""),
        data=data,
        edition=os.environ.get("WIKIPEDIA_EDITION") or WIKIPEDIA_EDITION,
    )
    bucket = DatasetBucket.of_workload(WORKLOAD) if name != MACHINE else None
    config = DataConfig(
        data=data,
        corpus=name,
        settings=settings,
        vocabulary=corpus.vocabulary(name, data=data, size=settings.vocab_size, bucket=bucket),
        validation_every=whole_number("VALIDATION_EVERY", VALIDATION_EVERY, VALIDATION_EVERY_ALLOWED),
        workers=worker_count(),
    )
    row = settings.bert_context + ROW_HEAD
    have_shards(config, bucket, lambda: make(config), counted="pairs", ids_each=row)
    note_for_training(shards=str(config.folder))


def make(config: DataConfig) -> Manifest:
    """Read the text and write the shards."""
    units = corpus.units(config.corpus, data=config.data)
    show_units(units, workers=config.workers)
    config.folder.mkdir(parents=True, exist_ok=True)
    tokenizer_file = tokenizer_of(config, units)
    tokenizer = open_tokenizer(tokenizer_file)
    recipe = Recipe(
        folder=config.folder,
        units=units,
        read=fetched_documents,
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
    remaining = remaining_units(recipe)
    check_space(config.folder, sum(space_of(each, shards=SHARD_BYTES_A_TEXT_BYTE) for each in remaining))
    return prepare(recipe, workers=config.workers, also=lambda: downloaded(config))


def downloaded(config: DataConfig) -> str:
    """Return the progress of the download, for a line of progress."""
    text = wikipedia_text(config.corpus)
    return text.downloaded(config.data) if text else ""


def layout_of(*, context: int) -> str:
    """Return the layout of the rows, which differ for another context."""
    return f"pairs {FORMAT} of {context}"


def tokenizer_of(config: DataConfig, units: tuple[Unit, ...]) -> Path:
    """Put tokenizer.json beside the shards: of the existing vocabulary, or of one trained once for a text."""
    file, size = config.folder / TOKENIZER, config.settings.vocab_size
    if config.vocabulary:
        from_vocabulary(config.vocabulary.ensure(), file)
        return file
    made_of = f"{config.fingerprint} {size}\n"
    if not is_made_of(file, made_of):
        print(f"data: training a vocabulary of {size:,} tokens")
        train(sample(units, read=fetched_documents), file, vocab_size=size)
        note_made_of(file, made_of)
    return file


if __name__ == "__main__":
    main(run)
