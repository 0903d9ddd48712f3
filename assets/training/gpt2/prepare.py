"""Weights and token shards of gpt2, before its ranks start.

Called by prepare.sh, once a job. Environment: DATA_DIR, RUN_DIR, EXPECTED_WORLD_SIZE; INIT_FROM (weights.py),
CORPUS (openwebtext; machine: text that exists on any machine; raw: your own files in DATA_DIR/raw, the
default if there are any), VOCAB_SIZE (of a tokenizer trained here), PREPARE_WORKERS (processes; all cores),
VALIDATION_EVERY, TRAINING_BUCKET; HF_ENDPOINT, HF_TOKEN (trainkit/data/hub.py).

Writes $DATA_DIR/<corpus>-<tokenizer>/ (shards, manifest.json, tokenizer.json), $DATA_DIR/models/ and
$DATA_DIR/downloads/, and $RUN_DIR/data.json: what train.py reads. Skips what is done, finishes what was
interrupted; downloads from the bucket what is there, and uploads what was made here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from settings import read_settings
from trainkit.data.dataset_bucket import DatasetBucket
from trainkit.data.documents import OWN, own_files
from trainkit.data.hub_text import HubText
from trainkit.data.lifecycle import main, note_for_training, validation_every
from trainkit.data.shards import MANIFEST, check_sequences, read_manifest, sha256_of
from trainkit.data.text_shards import MACHINE, TOKENIZER, TextShards
from weights import find_weights

WORKLOAD = "gpt2"
# The dataset of the walk-through, as parquet: 80 files of 303 MB, 8,013,769 documents.
OPENWEBTEXT = HubText(
    title="OpenWebText",
    name="openwebtext",
    repository="Skylion007/openwebtext",
    revision="79d93d786212f7344586290adb811d4ae6a1762c",
    folder="plain_text",
)
# nanoGPT uses 0.05 % of OpenWebText's documents for validation; small corpora need a larger share.
VALIDATION_EVERY = {"openwebtext": 2000, "machine": 20, OWN: 20}


@dataclass(frozen=True, kw_only=True)
class Shards(TextShards):
    """The shards of a text, with the tokenizer of the weights or one of their own."""

    # A token of GPT-2 has two bytes, and stands for about four of text.
    shard_bytes_a_text_byte: ClassVar[float] = 0.5
    other_text: ClassVar[str] = f"CORPUS={OPENWEBTEXT.name}, or CORPUS={MACHINE}"

    @property
    def folder(self) -> Path:
        """The folder of the shards, named by the text and the tokenizer."""
        return self.data / f"{self.name}-{self._label()}"

    def _label(self) -> str:
        if self.tokenizer is None:
            return f"vocab-{self.vocab_size}"
        weights = self.tokenizer.parent
        if weights.parent == self.data / "models":
            return weights.name
        own = sha256_of(self.tokenizer)
        for manifest in sorted(self.data.glob(f"{self.name}-*/{MANIFEST}")):
            if read_manifest(manifest.parent).tokenizer_sha256 == own:
                # The weights are a checkpoint of this trainer, whose data keeps its original name.
                return manifest.parent.name.removeprefix(f"{self.name}-")
        return f"bpe-{own[:8]}"


def run() -> None:
    """Prepare weights and shards, and record both for train.py."""
    settings, data = read_settings(), Path(os.environ["DATA_DIR"])
    bucket = DatasetBucket.of_workload(WORKLOAD)
    name = os.environ.get("CORPUS") or (OWN if own_files(data) else OPENWEBTEXT.name)
    init_from = os.environ.get("INIT_FROM") or "gpt2"
    weights = find_weights(init_from, data=data, bucket=bucket)
    shards = Shards(
        data=data,
        name=name,
        published=OPENWEBTEXT if name == OPENWEBTEXT.name else None,
        tokenizer=weights / TOKENIZER if weights else None,
        vocab_size=settings.vocab_size,
        validation_every=validation_every(VALIDATION_EVERY[name]),
    )
    folder = shards.ensure(bucket)
    check_sequences(
        folder,
        read_manifest(folder),
        settings.gpt2_context,
        ranks=int(os.environ["EXPECTED_WORLD_SIZE"]),
        validates=settings.eval_sequences > 0,
        setting="GPT2_CONTEXT",
    )
    note_for_training(
        corpus=name,
        shards=str(folder),
        init_from=init_from,
        weights=str(weights) if weights else None,
        **shards.note(),
    )


if __name__ == "__main__":
    main(run)
