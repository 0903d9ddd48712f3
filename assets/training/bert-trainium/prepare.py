"""Sentence pairs of bert-trainium as shards, before its ranks start.

Called by prepare.sh, once a job. Environment: DATA_DIR, RUN_DIR; CORPUS (wikipedia: articles without markup
from the Hugging Face hub, the walk-through's text, which AWS gave as ready masks; machine: text that exists
on any machine; raw: your own files in DATA_DIR/raw, the default if there are any), WIKIPEDIA_EDITION (date
and language of its articles: 20231101.en), VOCAB_SIZE, BERT_CONTEXT, PREPARE_WORKERS (processes; all cores),
VALIDATION_EVERY, TRAINING_BUCKET; HF_ENDPOINT, HF_TOKEN (trainkit/data/hub.py).

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
from typing import ClassVar

from pairs import FORMAT, ROW_HEAD
from settings import MACHINE, WIKIPEDIA, read_settings
from trainkit.data.dataset_bucket import DatasetBucket
from trainkit.data.documents import OWN, own_files, sample
from trainkit.data.hub_text import fetched_documents, wikipedia
from trainkit.data.lifecycle import main, note_for_training, validation_every
from trainkit.data.shards import Manifest, sha256_of
from trainkit.data.text_shards import TOKENIZER, TextShards
from trainkit.data.tokenize_unit import Recipe, Unit
from vocabulary import VOCABULARY, Vocabulary, find_vocabulary
from wordpiece import PairEncoder, from_vocabulary, open_tokenizer, special_of, train

WORKLOAD = "bert-trainium"
VALIDATION_EVERY = 20


@dataclass(frozen=True, kw_only=True)
class Pairs(TextShards):
    """The shards of a text: rows of sentence pairs."""

    not_text: ClassVar[frozenset[str]] = frozenset({VOCABULARY})
    # A row of 130 numbers holds about 500 characters, and few of them are padding.
    shard_bytes_a_text_byte: ClassVar[float] = 0.7
    other_text: ClassVar[str] = f"CORPUS={WIKIPEDIA}, or CORPUS={MACHINE}"
    context: int
    """Tokens of a row."""
    vocabulary: Vocabulary | None
    """The user's or the published vocabulary."""

    @property
    def folder(self) -> Path:
        """The folder of the shards, which may not exist yet."""
        made = f"given-{self.vocabulary.sha256[:8]}" if self.vocabulary else f"vocab-{self.vocab_size}"
        return self.data / f"{self.name}-{made}-{self.context}"

    @property
    def layout(self) -> str:
        """The layout of the rows, which differ for another context."""
        return f"pairs {FORMAT} of {self.context}"

    def counts(self, manifest: Manifest, **_: object) -> str:
        """Return the number of pairs of each split."""
        return super().counts(manifest, counted="pairs", ids_each=self.context + ROW_HEAD)

    def recipe(self, units: tuple[Unit, ...]) -> Recipe:
        """Return the inputs of the shards, with the existing vocabulary, or one trained once for a text."""
        file = self.folder / TOKENIZER
        if self.vocabulary:
            from_vocabulary(self.vocabulary.ensure(), file)
        else:

            def trained() -> None:
                print(f"data: training a vocabulary of {self.vocab_size:,} tokens")
                train(sample(units, read=fetched_documents), file, vocab_size=self.vocab_size)

            self.train_once(file, trained)
        tokenizer = open_tokenizer(file)
        return self.recipe_with(
            PairEncoder(file, self.context),
            units,
            vocab_size=tokenizer.get_vocab_size(),
            tokenizer_sha256=sha256_of(file),
            source={"context": self.context, "special": dataclasses.asdict(special_of(tokenizer))},
            layout=self.layout,
        )


def run() -> None:
    """Prepare the shards, and record them for train.py."""
    settings, data = read_settings([]), Path(os.environ["DATA_DIR"])
    own = OWN if own_files(data, without=Pairs.not_text) else WIKIPEDIA
    corpus = os.environ.get("CORPUS") or own
    text = wikipedia() if corpus == WIKIPEDIA else None
    bucket = DatasetBucket.of_workload(WORKLOAD) if corpus != MACHINE else None
    shards = Pairs(
        data=data,
        name=text.name if text else corpus,
        published=text,
        vocab_size=settings.vocab_size,
        validation_every=validation_every(VALIDATION_EVERY),
        context=settings.bert_context,
        vocabulary=find_vocabulary(corpus, text, data=data, size=settings.vocab_size, bucket=bucket),
    )
    folder = shards.ensure(bucket)
    note_for_training(shards=str(folder), **shards.note())


if __name__ == "__main__":
    main(run)
