"""Weights, tokenizer and token shards of titan, before its ranks start.

Called by prepare.sh, once a job. Environment: DATA_DIR, RUN_DIR; TASK; CORPUS (raw: your own files in
DATA_DIR/raw; machine: text that exists on any machine), INIT_FROM (weights.py), TOKENIZER (a tokenizer.json
or a folder with one; by default that of the weights, else one is trained here), VOCAB_SIZE (of that),
PREPARE_WORKERS (processes; all cores), VALIDATION_EVERY, TRAINING_BUCKET; HF_ENDPOINT, HF_TOKEN.

Writes $DATA_DIR/<corpus>-<tokenizer>/ (shards, manifest.json, tokenizer.json), $DATA_DIR/models/, and
$RUN_DIR/data.json, which train.py reads. Skips what is done, finishes what was interrupted.
"""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from chats import prepare_chats
from trainkit.data import bpe, machine_text
from trainkit.data.dataset_bucket import DatasetBucket
from trainkit.data.documents import OWN, PATTERNS, documents_of, fingerprint_of, own_files, pieces_of, sample
from trainkit.data.lifecycle import (
    check_space,
    find_or_download,
    is_made_of,
    is_of_text,
    main,
    note_for_training,
    note_made_of,
    remaining_units,
    show_made,
    show_units,
    upload,
    validation_share,
    verify_shards,
    whole_number,
    worker_count,
)
from trainkit.data.prepare_tokens import prepare
from trainkit.data.shards import Manifest, ShardError, read_manifest, sha256_of
from trainkit.data.tokenize_unit import Recipe, Unit
from weights import WeightsError, find_weights

WORKLOAD = "titan"
TOKENIZER = "tokenizer.json"
# Beside tokenizer.json: names of special tokens, and the template of chats.
TOKENIZER_CONFIG = "tokenizer_config.json"
MACHINE = "machine"
CORPORA = (OWN, MACHINE)
VALIDATION_EVERY = 20
# The 256 bytes and the end of text have to fit.
VOCAB_SIZES = range(300, 262_145)


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """The text, tokenizer and split of a run."""

    data: Path
    corpus: str
    tokenizer: Path | None
    """The tokenizer.json that is given; None for one that is trained on the text."""
    vocab_size: int
    validation_every: int
    workers: int

    @property
    def folder(self) -> Path:
        """The folder of the shards, which may not exist yet."""
        own = f"vocab-{self.vocab_size}"
        return (
            self.data / f"{self.corpus}-{f'bpe-{sha256_of(self.tokenizer)[:8]}' if self.tokenizer else own}"
        )

    @property
    def files(self) -> list[Path]:
        """The files of text, by name."""
        return machine_text.gather(self.data / MACHINE) if self.corpus == MACHINE else own_files(self.data)

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the text; None if there is none."""
        return machine_text.fingerprint() if self.corpus == MACHINE else fingerprint_of(own_files(self.data))

    def fits(self, manifest: Manifest) -> bool:
        """Return True if shards are made of this text, with this tokenizer."""
        return is_of_text(manifest, self.fingerprint, validation_every=self.validation_every) and (
            self.tokenizer is None or manifest.tokenizer_sha256 == sha256_of(self.tokenizer)
        )


def run() -> None:
    """Prepare weights and shards, and note both for train.py."""
    data = Path(os.environ["DATA_DIR"])
    bucket = DatasetBucket.of_workload(WORKLOAD)
    weights = find_weights(os.environ.get("INIT_FROM", ""), data=data)
    name = os.environ.get("CORPUS") or OWN
    if name not in CORPORA:
        raise ShardError(f'CORPUS is "{name}"; allowed: {", ".join(CORPORA)}.')
    validation_every = validation_share(VALIDATION_EVERY)
    if os.environ.get("TASK") == "sft":
        prepare_sft(data, weights, validation_every)
        return
    config = DataConfig(
        data=data,
        corpus=name,
        tokenizer=given_tokenizer(weights),
        vocab_size=whole_number("VOCAB_SIZE", 32_000, VOCAB_SIZES),
        validation_every=validation_every,
        workers=worker_count(),
    )
    shared = None if name == MACHINE else bucket
    started = time.monotonic()
    if not find_or_download(config, shared):
        show_made(config.folder, make(config), started=started)
    verify_shards(config.folder)
    upload(config.folder, shared)
    note_for_training(
        corpus=name,
        shards=str(config.folder),
        tokenizer=str(weights or config.folder),
        weights=str(weights) if weights else None,
        vocab_size=str(read_manifest(config.folder).vocab_size),
        end_of_text=str(bpe.Bpe((config.folder / TOKENIZER,)).end_of_text),
    )


def prepare_sft(data: Path, weights: Path | None, validation_every: int) -> None:
    """Prepare chats, and note them for train.py.

    Raises:
        ShardError: there are no weights to fine-tune, or they have no template of chats.
    """
    if not weights:
        raise ShardError(
            "TASK=sft needs weights: give INIT_FROM, a name on the Hugging Face hub or a folder."
        )
    template = weights / "chat_template.jinja"
    own = weights / TOKENIZER_CONFIG
    if not template.is_file() and '"chat_template"' not in (own.read_text() if own.is_file() else ""):
        raise ShardError(
            f"{weights} has no template of chats: take an instruction-tuned model, or write {template}."
        )
    files = own_files(data)
    chats = prepare_chats(files, data, fingerprint_of(files) or "", validation_every=validation_every)
    note_for_training(chats=str(chats), tokenizer=str(weights), weights=str(weights))


def given_tokenizer(weights: Path | None) -> Path | None:
    """Return TOKENIZER, else the tokenizer of the weights, else None.

    Raises:
        ShardError: the file does not exist, or the weights have another tokenizer.
    """
    own = weights / TOKENIZER if weights else None
    if not (given := os.environ.get("TOKENIZER")):
        return own
    file = Path(given) / TOKENIZER if Path(given).is_dir() else Path(given)
    if not file.is_file():
        raise ShardError(f"there is no file {file}: give the path of a tokenizer.json as TOKENIZER, or none.")
    if own and sha256_of(own) != sha256_of(file):
        raise ShardError(f"TOKENIZER={given} is not that of the weights {weights}: give none with INIT_FROM.")
    return file


def make(config: DataConfig) -> Manifest:
    """Read the text and write the shards."""
    units = tuple(piece for file in config.files for piece in pieces_of(file))
    if not units:
        raise ShardError(
            f"there is no text: put {PATTERNS} into {config.data / OWN}, or train on the text of this "
            f"machine: CORPUS={MACHINE}."
        )
    show_units(units, workers=config.workers)
    config.folder.mkdir(parents=True, exist_ok=True)
    tokenizer = bpe.Bpe((tokenizer_of(config, units),))
    recipe = Recipe(
        folder=config.folder,
        units=units,
        read=documents_of,
        encoder=tokenizer,
        vocab_size=tokenizer.vocab_size,
        tokenizer_sha256=tokenizer.sha256,
        source={
            "corpus": config.corpus,
            "fingerprint": config.fingerprint,
            "validation_every": config.validation_every,
            "parts": [{"name": unit.name, "size_bytes": unit.size_bytes} for unit in units],
        },
        validation_every=config.validation_every,
    )
    check_space(config.folder, sum(unit.size_bytes for unit in remaining_units(recipe)))
    return prepare(recipe, workers=config.workers)


def tokenizer_of(config: DataConfig, units: tuple[Unit, ...]) -> Path:
    """Put tokenizer.json beside the shards: the given one, or one that is trained once for a text."""
    file = config.folder / TOKENIZER
    if config.tokenizer:
        for given in (config.tokenizer, config.tokenizer.with_name(TOKENIZER_CONFIG)):
            if given.is_file():
                shutil.copyfile(given, config.folder / given.name)
        return file
    made_of = f"{config.fingerprint} {config.vocab_size}\n"
    if not is_made_of(file, made_of):
        bpe.train(bpe.Bpe((file,)), sample(units), vocab_size=config.vocab_size)
        note_made_of(file, made_of)
    return file


if __name__ == "__main__":
    main(run, WeightsError)
