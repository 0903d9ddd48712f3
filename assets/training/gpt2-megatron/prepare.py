"""Text, tokens and Megatron's data files of gpt2-megatron, before its ranks start.

Called by prepare.sh, once a job. Environment: DATA_DIR, RUN_DIR, EXPECTED_WORLD_SIZE, ACCELERATOR_KIND;
CORPUS (wikipedia; machine: text that exists on any machine; raw: your own files in DATA_DIR/raw),
WIKIPEDIA_EDITION (date and language of its articles: 20231101.en), VOCAB_SIZE (50257: GPT-2's; another:
trained on the text), GPT2_BPE_URL, INIT_FROM, PREPARE_WORKERS (processes; all cores), VALIDATION_EVERY,
PREPARE_HERE, TRAINING_BUCKET; HF_ENDPOINT, HF_TOKEN (trainkit/data/hub.py).

Writes $DATA_DIR/downloads/, $DATA_DIR/gpt2/, $DATA_DIR/models/, $DATA_DIR/<corpus>-vocab-<n>/ (token shards,
megatron/) and $RUN_DIR/data.json: what train.py reads. Skips what is done, finishes what was interrupted;
downloads shards from the bucket if it has them, and uploads what was made here.
"""

from __future__ import annotations

import os
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from settings import DATA_FOLDER, published_file, read_settings
from tokens import bpe_of, gpt2
from trainkit.data.bpe import GPT2_VOCAB_SIZE, Bpe, train
from trainkit.data.dataset_bucket import DatasetBucket
from trainkit.data.documents import OWN, sample
from trainkit.data.fetch import ensure_file
from trainkit.data.hub_text import WIKIPEDIA, fetched_documents, wikipedia
from trainkit.data.indexed import make_indexed
from trainkit.data.lifecycle import main, note_for_training, validation_every
from trainkit.data.shards import SPLITS, Manifest, ShardError, check_sequences, read_manifest
from trainkit.data.text_shards import MACHINE, TextShards
from trainkit.data.tokenize_unit import Recipe, Unit
from trainkit.run.files import whole_file

WORKLOAD = "gpt2-megatron"
# For larger vocabularies Megatron's files have ids of 4 bytes (DType.optimal_dtype).
SMALL_VOCABULARY = 65_500
# One of this many documents is for validation, which suits large and small texts.
VALIDATION_EVERY = {WIKIPEDIA: 200, "machine": 20, OWN: 200}
# NVIDIA's GPT-2 345M, one file of a zip of NGC.
PUBLISHED = "megatron-345m"
ZIP = "megatron_lm_345m_v0.0.zip"
URL = "https://api.ngc.nvidia.com/v2/models/nvidia/megatron_lm_345m/versions/v0.0/zip"
MEMBER = "model_optim_rng.pt"


@dataclass(frozen=True, kw_only=True)
class Shards(TextShards):
    """The shards of a text, with GPT-2's vocabulary or one that is trained on the text."""

    other_text: ClassVar[str] = f"CORPUS={WIKIPEDIA}, or CORPUS={MACHINE}"
    bucket: DatasetBucket | None

    @property
    def own_bpe(self) -> Bpe:
        """The vocabulary that is trained on the text."""
        return bpe_of(self.folder / "vocabulary")

    def make(self) -> Manifest:
        """Read the text and write the shards."""
        self.refuse_on_gpus()
        if self.vocab_size == GPT2_VOCAB_SIZE:
            # The small files first, so that an error in them is reported at once.
            gpt2(self.data / "gpt2", self.bucket)
        return super().make()

    def refuse_on_gpus(self) -> None:
        """Refuse a preparation that would keep GPUs idle for hours.

        Raises:
            ShardError: this node has accelerators, and the text is large.
        """
        if not self.published or os.environ.get("PREPARE_HERE") == "yes":
            return
        if os.environ.get("ACCELERATOR_KIND", "none") != "none":
            raise ShardError(
                f"{self.folder} is not prepared, and GPUs would wait for it for hours: prepare it on CPUs "
                f"first (PREPARE_ONLY=1 sbatch --partition cpu --nodes 1 job.slurm {WORKLOAD}), or here: "
                "PREPARE_HERE=yes."
            )

    def recipe(self, units: tuple[Unit, ...]) -> Recipe:
        """Return the inputs of the shards, with the vocabulary in two files."""
        if self.vocab_size == GPT2_VOCAB_SIZE:
            bpe = gpt2(self.data / "gpt2", self.bucket)
        else:
            bpe = self.own_bpe
            texts = sample(units, read=fetched_documents)
            self.train_once(bpe.files[-1], lambda: train(bpe, texts, vocab_size=self.vocab_size))
        return self.recipe_with(
            bpe,
            units,
            vocab_size=bpe.vocab_size,
            tokenizer_sha256=bpe.sha256,
            source={"end_of_text": bpe.end_of_text},
        )


def run() -> None:
    """Prepare text, shards, Megatron's files and weights, and record them for train.py."""
    settings, bucket = read_settings(), DatasetBucket.of_workload(WORKLOAD)
    shards = shards_of_run(bucket)
    check_init_from(os.environ.get("INIT_FROM") or "scratch")
    folder = shards.ensure(bucket)
    manifest = read_manifest(folder)
    check_sequences(
        folder,
        manifest,
        settings.gpt2_context,
        ranks=max(1, int(os.environ["EXPECTED_WORLD_SIZE"]) // settings.ranks_of_model),
        validates=settings.eval_sequences > 0,
        setting="GPT2_CONTEXT",
    )
    end = int(manifest.source["end_of_text"])
    make_indexed(
        folder / DATA_FOLDER,
        splits={split: split for split in SPLITS},
        end=end,
        # The type that Megatron uses for a vocabulary of this size.
        dtype="uint16" if manifest.vocab_size < SMALL_VOCABULARY else "int32",
        documents=True,
        noted={"vocab_size": manifest.vocab_size, "eod": end},
    )
    if os.environ.get("INIT_FROM") == PUBLISHED:
        have_published(shards.data, bucket)
    note_for_training(shards=str(folder), **shards.note())


def shards_of_run(bucket: DatasetBucket | None) -> Shards:
    """Return the shards that the settings and the variables of the data name.

    Raises:
        ShardError: there is no such edition of Wikipedia.
    """
    corpus, settings = os.environ.get("CORPUS") or WIKIPEDIA, read_settings()
    text = wikipedia() if corpus == WIKIPEDIA else None
    return Shards(
        data=Path(os.environ["DATA_DIR"]),
        name=text.name if text else corpus,
        published=text,
        vocab_size=settings.vocab_size,
        validation_every=validation_every(VALIDATION_EVERY[corpus]),
        bucket=bucket,
    )


def check_init_from(init_from: str) -> None:
    """Check INIT_FROM as far as possible without a download. Raises ShardError: `init_from` names nothing."""
    if init_from not in {"scratch", PUBLISHED} and not Path(init_from).is_file():
        raise ShardError(f"INIT_FROM is {init_from}: give scratch, {PUBLISHED}, or such a file {MEMBER}.")


def have_published(data: Path, bucket: DatasetBucket | None) -> None:
    """Ensure that the checkpoint exists below DATA_DIR/models, from the bucket or from NGC (NGC_345M_URL).

    Its checksum is not published, so only the zip's own checksums reveal damage.

    Raises:
        ShardError: it cannot be downloaded, or is not such a zip.
    """
    file = published_file(data)
    if file.is_file():
        return
    archive = data / "models" / ZIP
    ensure_file(archive, url=os.environ.get("NGC_345M_URL") or URL, key=f"models/{ZIP}", bucket=bucket)
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with zipfile.ZipFile(archive) as opened:
            member = next((name for name in opened.namelist() if name.endswith(MEMBER)), None)
            if member is None:
                raise ShardError(f"{archive} has no {MEMBER}: delete it, and put the right file there.")
            with opened.open(member) as source, whole_file(file) as out:
                shutil.copyfileobj(source, out)
    except zipfile.BadZipFile as error:
        raise ShardError(f"{archive} is not a complete zip ({error}): delete it and submit again.") from error


if __name__ == "__main__":
    main(run)
