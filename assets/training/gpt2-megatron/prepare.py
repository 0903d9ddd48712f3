"""Text, tokens and Megatron's data files of gpt2-megatron, before its ranks start.

Called by prepare.sh, once a job. Environment: DATA_DIR, RUN_DIR, ACCELERATOR_KIND; CORPUS (wikipedia;
machine: text that exists on any machine; raw: your own files in DATA_DIR/raw), WIKIPEDIA_EDITION (date and
language of its articles: 20231101.en), VOCAB_SIZE (50257: GPT-2's; another: trained on the text),
GPT2_BPE_URL, INIT_FROM, PREPARE_WORKERS (processes; all cores), VALIDATION_EVERY, PREPARE_HERE,
TRAINING_BUCKET; HF_ENDPOINT, HF_TOKEN (trainkit/data/hub.py).

Writes $DATA_DIR/downloads/, $DATA_DIR/gpt2/, $DATA_DIR/models/, $DATA_DIR/<corpus>-vocab-<n>/ (token shards,
megatron/) and $RUN_DIR/data.json: what train.py reads. Skips what is done, finishes what was interrupted;
downloads shards from the bucket if it has them, and uploads what was made here.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import published
from indexed import make_indexed
from settings import CORPORA, VOCAB_SIZES
from tokens import gpt2, train_bpe
from trainkit.data import machine_text
from trainkit.data.bpe import GPT2_VOCAB_SIZE
from trainkit.data.dataset_bucket import DatasetBucket
from trainkit.data.documents import (
    OWN,
    PATTERNS,
    fingerprint_of,
    own_files,
    pieces_of,
    sample,
)
from trainkit.data.hub_text import (
    WIKIPEDIA_EDITION,
    fetched_documents,
    space_of,
    wikipedia_corpus,
    wikipedia_text,
)
from trainkit.data.lifecycle import (
    check_space,
    have_shards,
    is_of_text,
    main,
    note_for_training,
    remaining_units,
    show_units,
    whole_number,
    worker_count,
)
from trainkit.data.prepare_tokens import prepare
from trainkit.data.shards import Manifest, ShardError, read_manifest
from trainkit.data.tokenize_unit import Recipe, Unit
from trainkit.run.settings import VALIDATION_SHARES

WORKLOAD = "gpt2-megatron"
# One of this many documents is for validation, which suits large and small texts.
VALIDATION_EVERY = {"wikipedia": 200, "machine": 20, OWN: 200}


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """The text, vocabulary and split of a run."""

    data: Path
    corpus: str
    name: str
    """The corpus, and of Wikipedia the edition."""
    vocab_size: int
    validation_every: int
    workers: int

    @property
    def folder(self) -> Path:
        """The folder of the shards, which may not exist yet."""
        return self.data / f"{self.name}-vocab-{self.vocab_size}"

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the text; None if there is none."""
        if text := wikipedia_text(self.name):
            return text.fingerprint
        if self.corpus == "machine":
            return machine_text.fingerprint()
        return fingerprint_of(own_files(self.data))

    def fits(self, manifest: Manifest) -> bool:
        """Return True if shards are made of this text."""
        return is_of_text(manifest, self.fingerprint, validation_every=self.validation_every)


def run() -> None:
    """Prepare text, shards, Megatron's files and weights, and record them for train.py."""
    bucket = DatasetBucket.of_workload(WORKLOAD)
    config = read_config()
    published.check(os.environ.get("INIT_FROM") or "scratch")
    shared = None if config.corpus == "machine" else bucket
    have_shards(config, shared, lambda: make(config, bucket))
    make_indexed(config.folder, end_of_text=int(read_manifest(config.folder).source["end_of_text"]))
    if os.environ.get("INIT_FROM") == published.NAME:
        published.have(config.data, bucket)
    note_for_training(shards=str(config.folder))


def read_config() -> DataConfig:
    """Read the variables of the data.

    Raises:
        ShardError: a value is invalid.
    """
    data = Path(os.environ["DATA_DIR"])
    name = corpus = os.environ.get("CORPUS") or "wikipedia"
    if corpus not in CORPORA:
        raise ShardError(f"CORPUS is {corpus!r}; allowed: {', '.join(CORPORA)}.")
    if corpus == "wikipedia":
        name = wikipedia_corpus(os.environ.get("WIKIPEDIA_EDITION") or WIKIPEDIA_EDITION)
    return DataConfig(
        data=data,
        corpus=corpus,
        name=name,
        vocab_size=whole_number("VOCAB_SIZE", GPT2_VOCAB_SIZE, VOCAB_SIZES),
        validation_every=whole_number("VALIDATION_EVERY", VALIDATION_EVERY[corpus], VALIDATION_SHARES),
        workers=worker_count(),
    )


def made_of(config: DataConfig) -> str:
    """Return a checksum that changes with the vocabulary that is trained on the text."""
    return hashlib.sha256(f"{config.fingerprint} {config.vocab_size}".encode()).hexdigest()


def make(config: DataConfig, bucket: DatasetBucket | None) -> Manifest:
    """Read the text and write the shards."""
    refuse_on_gpus(config)
    # The small files first, so that an error in them is reported at once.
    bpe = gpt2(config.data / "gpt2", bucket) if config.vocab_size == GPT2_VOCAB_SIZE else None
    units = units_of(config)
    show_units(units, workers=config.workers)
    config.folder.mkdir(parents=True, exist_ok=True)
    bpe = bpe or train_bpe(
        config.folder / "vocabulary",
        sample(units, read=fetched_documents),
        vocab_size=config.vocab_size,
        made_of=made_of(config),
    )
    recipe = Recipe(
        folder=config.folder,
        units=units,
        read=fetched_documents,
        encoder=bpe,
        vocab_size=bpe.vocab_size,
        tokenizer_sha256=bpe.sha256,
        source={
            "corpus": config.name,
            "fingerprint": config.fingerprint,
            "validation_every": config.validation_every,
            "end_of_text": bpe.end_of_text,
        },
        validation_every=config.validation_every,
    )
    check_space(config.folder, sum(map(space_of, remaining_units(recipe))))
    return prepare(recipe, workers=config.workers, also=lambda: downloaded(config))


def downloaded(config: DataConfig) -> str:
    """Return the progress of the download, for a line of progress."""
    text = wikipedia_text(config.name)
    return text.downloaded(config.data) if text else ""


def refuse_on_gpus(config: DataConfig) -> None:
    """Refuse a preparation that would keep GPUs idle for hours.

    Raises:
        ShardError: this node has accelerators, and the text is large.
    """
    if config.corpus != "wikipedia" or os.environ.get("PREPARE_HERE") == "yes":
        return
    if os.environ.get("ACCELERATOR_KIND", "none") != "none":
        raise ShardError(
            f"{config.folder} is not prepared, and GPUs would wait for it for hours: prepare it on CPUs "
            f"first (PREPARE_ONLY=1 sbatch --partition cpu --nodes 1 job.slurm {WORKLOAD}), or here: "
            "PREPARE_HERE=yes."
        )


def units_of(config: DataConfig) -> tuple[Unit, ...]:
    """List the units of the corpus in a fixed order.

    Raises:
        ShardError: there is no text, or the hub does not answer.
    """
    if text := wikipedia_text(config.name):
        return text.units(config.data)
    machine = config.corpus == "machine"
    files = machine_text.gather(config.data / "machine-text") if machine else own_files(config.data)
    units = tuple(unit for file in files for unit in pieces_of(file))
    if not units:
        raise ShardError(
            f"CORPUS is {config.corpus}, but {config.data / OWN} has no {PATTERNS}: put files there."
        )
    return units


if __name__ == "__main__":
    main(run)
