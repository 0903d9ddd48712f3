"""The roberta workload on two nodes of a real Slurm on this machine: fairseq, which compiles for minutes."""

import json
import math
import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest

from tests.slow.assets.training.training import (
    Training,
    check_that_a_killed_run_resumes,
    check_that_divergence_ends_a_run,
    check_that_fewer_nodes_go_on,
    check_whole_run,
    training_on_slurm,
)
from training_cluster.paths import TRAINING

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(1800)]

STEPS, SAVED_EVERY = 16, 5
# Small enough for more than one epoch: 8 updates are one.
TEXT = "\n\n".join(topics.values())[:120_000]
SETTINGS = {
    "CORPUS": "raw",
    "MAX_STEPS": str(STEPS),
    "CHECKPOINT_EVERY": str(SAVED_EVERY),
    "WARMUP_STEPS": "2",
    "LOG_EVERY": "2",
    "DATA_WORKERS": "1",
    "GRADIENT_ACCUMULATION": "2",
}
# The environment, with a compilation.
FIRST_RUN_S = 1500


# The lines of each split as prepare.py reads them, in files for fairseq's encoder.
WRITE_LINES = """
import sys
from pathlib import Path
import lines
from trainkit.data.documents import pieces_of
text, folder = map(Path, sys.argv[1:])
(piece,) = pieces_of(text, text.parent)
texts = {"train": "", "valid": ""}
for number, (found, _) in enumerate(lines.read_lines(piece), start=1):
    texts["train" if number % 20 else "valid"] += found
for split, found in texts.items():
    (folder / split).write_text(found, encoding="utf-8")
"""
# Gives a BPE as if it had been trained on the text.
GIVE_BPE = """
import shutil, sys
from prepare import shards_of_run
bpe = sys.argv.pop()
shards = shards_of_run(None)
shards.train_once(shards.own_bpe.dictionary, lambda: shutil.copytree(bpe, shards.folder, dirs_exist_ok=True))
"""
ENCODER = "fairseq.examples.roberta.multiprocessing_bpe_encoder"
HARD = "caf\u00e9 \u4e2d  it's \U0001f600\n\n \t \n<|endoftext|> </s> 12 <unk>\na\u2028b\x0bc\x85\n   led  \n"
Command = list[str | Path]


def data_dir(training: Training) -> Path:
    return training.shared / "datasets" / "roberta"


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    with training_on_slurm(tmp_path_factory.mktemp("roberta"), workload="roberta", env=SETTINGS) as training:
        raw = data_dir(training) / "raw"
        raw.mkdir(parents=True)
        (raw / "topics.txt").write_text(TEXT, encoding="utf-8")
        yield training


@pytest.fixture(scope="module")
def whole_run(training: Training) -> str:
    """Output of a run that nothing interrupts."""
    return training.wait(training.submit("whole"), state="COMPLETED", timeout_s=FIRST_RUN_S)


def fairseq_log(said: str, name: str) -> list[dict[str, Any]]:
    """fairseq's own lines of measures."""
    return [json.loads(found) for found in re.findall(rf"\| {name} \| (\{{.*\}})", said)]


def test_two_nodes_train_as_one_world(training: Training, whole_run: str) -> None:
    rows = check_whole_run(training, steps=STEPS, falls_by=0.4)
    assert all(row["memory_bytes"] > 1e8 for row in rows)
    # What fairseq itself says of the world: devices, and sentences an update (16 a rank and micro-step).
    assert whole_run.count("training on 2 devices") == 1
    inner = fairseq_log(whole_run, "train_inner")
    assert inner[0]["bsz"] == "64"
    # Its losses are in bits, and means over two updates; ours are in nats.
    nats = sum(row["loss"] for row in rows[-2:]) / 2
    assert nats == pytest.approx(float(inner[-1]["loss"]) * math.log(2), rel=0.01)


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """A preparation without Slurm, of a text and with a BPE of its own."""

    folder: Path
    python: Path

    @property
    def environment(self) -> dict[str, str]:
        """Environment that job.slurm and prepare.sh give."""
        path = f"{TRAINING}:{TRAINING / 'roberta'}"
        own = {"DATA_DIR": str(self.folder), "CORPUS": "raw", "VOCAB_SIZE": "2048", "PREPARE_WORKERS": "2"}
        return {**os.environ, **own, "RUN_DIR": str(self.folder), "PYTHONPATH": path}

    @property
    def text(self) -> Path:
        """Folder of the prepared text."""
        return self.folder / "raw" / "text.txt"

    @property
    def made(self) -> Path:
        """The data, when it is whole."""
        return self.folder / "raw-vocab-2048"

    def give(self, text: str, *, bpe: Path) -> None:
        """A text, and a BPE as if it had been trained here."""
        self.text.parent.mkdir(parents=True)
        self.text.write_text(text, encoding="utf-8")
        self.made.mkdir()
        subprocess.run([self.python, "-B", "-c", GIVE_BPE, bpe], env=self.environment, check=True)

    def start(self) -> subprocess.Popen[str]:
        """Start prepare.py as prepare.sh does."""
        command: Command = [self.python, "-B", TRAINING / "roberta" / "prepare.py"]
        return subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, text=True)

    def prepare(self) -> None:
        """To the end."""
        process = self.start()
        said, _ = process.communicate()
        assert process.returncode == 0, said

    def by_fairseq(self, bpe: Path, to: Path) -> None:
        """The same by fairseq's own programs."""
        lines = to / "lines"
        lines.mkdir(parents=True)
        run: Command = [self.python, "-B"]
        commands: list[Command] = [[*run, "-c", WRITE_LINES, self.text, lines]]
        for split in ("train", "valid"):
            encode = [*run, "-m", ENCODER, "--keep-empty", "--workers", "1"]
            encode += ["--encoder-json", bpe / "encoder.json", "--vocab-bpe", bpe / "vocab.bpe"]
            commands += [[*encode, "--inputs", lines / split, "--outputs", to / f"{split}.bpe"]]
        binarise = [*run, "-m", "fairseq_cli.preprocess", "--only-source", "--srcdict", bpe / "dict.txt"]
        binarise += ["--trainpref", to / "train.bpe", "--validpref", to / "valid.bpe"]
        commands += [[*binarise, "--destdir", to, "--workers", "2"]]
        for command in commands:
            done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr


def preparation(training: Training, folder: Path) -> Preparation:
    return Preparation(folder=folder, python=training.python)


def bpe_with_another_dictionary(trained: Path, folder: Path, *, made_up: int) -> Path:
    """Symbols in another order than the ids, with counts, and some that are no ids: as GPT-2's is."""
    folder.mkdir()
    for name in ("encoder.json", "vocab.bpe"):
        shutil.copyfile(trained / name, folder / name)
    ids = list(json.loads((trained / "encoder.json").read_text()).values())
    random.Random(1).shuffle(ids)
    symbols = [f"{number} {count}\n" for count, number in enumerate(ids)]
    symbols += [f"madeupword{number:04d} 0\n" for number in range(made_up)]
    (folder / "dict.txt").write_text("".join(symbols))
    return folder


# Of more than 65,500 symbols fairseq writes numbers of 4 bytes.
@pytest.mark.parametrize(("made_up", "token_bytes"), [(3, 2), (70_000, 4)])
def test_data_files_equal_those_of_fairseq(
    training: Training, whole_run: str, tmp_path: Path, made_up: int, token_bytes: int
) -> None:
    trained = data_dir(training) / "raw-vocab-2048"
    bpe = bpe_with_another_dictionary(trained, tmp_path / "bpe", made_up=made_up)
    ours, theirs = preparation(training, tmp_path / "ours"), tmp_path / "theirs"
    ours.give(HARD + TEXT, bpe=bpe)
    ours.prepare()
    ours.by_fairseq(bpe, theirs)
    for name in ("dict.txt", "train.bin", "train.idx", "valid.bin", "valid.idx"):
        assert (ours.made / "fairseq" / name).read_bytes() == (theirs / name).read_bytes(), name
    tokens = json.loads((ours.made / "fairseq" / "manifest.json").read_text())["tokens"]
    assert (theirs / "train.bin").stat().st_size == tokens["train"] * token_bytes


def test_a_killed_run_gives_the_same_losses(training: Training, whole_run: str) -> None:
    # In the second epoch, whose masks are others than the first's.
    check_that_a_killed_run_resumes(training, CHECKPOINT_EVERY=str(2 * SAVED_EVERY))


def test_fewer_nodes_train_the_same_batches(training: Training, whole_run: str) -> None:
    """fairseq counts the batches of one rank. In an epoch's last step ranks may lack a batch."""
    own = {"MAX_STEPS": str(STEPS + 1), "ROBERTA_DROPOUT": "0"}
    said = check_that_fewer_nodes_go_on(training, f"step-{STEPS - 1:06d}", **own)
    assert "GRADIENT_ACCUMULATION is 4, not 2: a step has 64 sequences (GLOBAL_BATCH)\n" in said


def test_a_run_that_diverges_ends(training: Training, whole_run: str) -> None:
    check_that_divergence_ends_a_run(training, says="the gradients are not finite; fairseq ended with: ")
    # What fairseq saves of the broken step stays beside the record: checkpoints are exported to the bucket.
    saved = [path.name for path in training.checkpoints("diverged").iterdir()]
    assert [name for name in saved if not re.fullmatch(r"step-\d{6}|latest_step", name)] == []
    assert (training.run_dir("diverged") / "crash.pt").is_file()


def test_a_cancelled_run_saves_and_resumes(training: Training, whole_run: str) -> None:
    endless = {"MAX_STEPS": "100000", "CHECKPOINT_EVERY": "100000"}
    job_id = training.submit("ended", **endless)
    training.wait_for_step(job_id, "ended", 3)
    training.end(job_id)
    at = int((training.checkpoints("ended") / "latest_step").read_text())
    assert (training.run_dir("ended") / "outcome").read_text() == f"stopped {at}\n"
    assert len(training.metrics("ended")) == at
    # The ranks may be started by srun as well.
    said = training.run("ended", MAX_STEPS=str(at + 1), LAUNCHER="srun")
    assert f"resuming from {training.checkpoints('ended') / f'step-{at:06d}'}" in said
    assert [row["step"] for row in training.metrics("ended")] == list(range(1, at + 2))
    # And a run that is at its last step has nothing to do.
    assert "is at MAX_STEPS" in training.run("ended", MAX_STEPS=str(at))
