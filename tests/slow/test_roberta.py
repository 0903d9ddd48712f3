"""The roberta workload on two nodes of a real Slurm on this machine: fairseq, which compiles for minutes."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import psutil
import pytest

from .training import TRAINING, Training, marked, training_on_slurm

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


# Compares the ids of every line with those of fairseq's own encoder.
COMPARE = """
import sys
from pathlib import Path
from fairseq.data.encoders.gpt2_bpe_utils import get_encoder
from line_bpe import Bpe
folder, text = map(Path, sys.argv[1:])
fairseq, ours = get_encoder(folder / "encoder.json", folder / "vocab.bpe"), Bpe(folder).tokenizer()
lines = [line.strip() for line in text.read_text(encoding="utf-8").splitlines()]
lines.append("caf\u00e9 \u4e2d  it's \U0001f600")
assert all(fairseq.encode(line) == ours.encode(line).ids for line in lines)
print("same", len(lines))
"""


def data_dir(training: Training) -> Path:
    return training.shared / "datasets" / "roberta"


def venvs(training: Training) -> Path:
    return Path(os.environ.get("TRAINING_VENVS", str(training.shared / "venvs")))


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    with training_on_slurm(tmp_path_factory.mktemp("roberta"), workload="roberta", env=SETTINGS) as training:
        raw = data_dir(training) / "raw"
        raw.mkdir(parents=True)
        (raw / "topics.txt").write_text(TEXT, encoding="utf-8")
        yield training


@pytest.fixture(scope="module")
def whole_run(training: Training) -> str:
    """What a run that nothing interrupts has printed."""
    return training.wait(training.submit("whole"), state="COMPLETED", timeout_s=FIRST_RUN_S)


def equal_parts(rows: list[dict[str, Any]]) -> list[tuple[int, float, float, int]]:
    """What has to be equal, bit by bit: how long a step took is not."""
    return [(row["step"], row["loss"], row["learning_rate"], row["tokens"]) for row in rows]


def ranks() -> list[psutil.Process]:
    """The processes that train, of all nodes; the data's own processes left out."""
    found = [
        process
        for process in marked("roberta")
        if any(part.endswith("roberta/train.py") for part in process.cmdline())
        and "torch.distributed.run" not in process.cmdline()
    ]
    return [process for process in found if process.ppid() not in {other.pid for other in found}]


def fairseq_log(said: str, name: str) -> list[dict[str, Any]]:
    """fairseq's own lines of measures."""
    return [json.loads(found) for found in re.findall(rf"\| {name} \| (\{{.*\}})", said)]


def test_fairseq_trains_on_two_nodes_as_one_world_and_its_loss_falls(
    training: Training, whole_run: str
) -> None:
    rows = training.metrics("whole")
    assert [row["step"] for row in rows] == list(range(1, STEPS + 1))
    assert {row["world_size"] for row in rows} == {2}
    assert rows[-1]["loss"] < rows[0]["loss"] - 0.4
    assert all(row["memory_bytes"] > 1e8 for row in rows)
    assert (training.run_dir("whole") / "outcome").read_text() == "finished\n"
    assert (training.checkpoints("whole") / "latest_step").read_text() == f"{STEPS}\n"
    # What fairseq itself says of the world: devices, and sentences an update (16 a rank and micro-step).
    assert whole_run.count("training on 2 devices") == 1
    inner = fairseq_log(whole_run, "train_inner")
    assert inner[0]["bsz"] == "64"
    # Its losses are in bits, and means over two updates; ours are in nats.
    nats = sum(row["loss"] for row in rows[-2:]) / 2
    assert nats == pytest.approx(float(inner[-1]["loss"]) * math.log(2), rel=0.01)


def test_the_models_size_is_the_one_that_is_reckoned_with_for_space_and_flops(whole_run: str) -> None:
    # 2 layers of width 128, 64 positions and the 2053 symbols of a BPE of 2048.
    width, symbols = 128, 2053
    layers = 2 * (12 * width**2 + 13 * width)
    size = layers + (symbols + 66) * width + 2 * width + width**2 + 3 * width + symbols
    assert f"num. shared model params: {size:,}" in whole_run


def test_the_ids_are_those_of_fairseqs_own_encoder(training: Training, whole_run: str) -> None:
    folder = data_dir(training)
    done = subprocess.run(
        [
            venvs(training) / "roberta/bin/python",
            "-B",
            "-c",
            COMPARE,
            folder / "raw-bpe-2048",
            folder / "raw/topics.txt",
        ],
        env={"PYTHONPATH": f"{TRAINING}:{TRAINING / 'roberta'}"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("same"), done.stderr


def test_killed_in_the_middle_it_starts_again_by_itself_and_gives_the_very_same_losses(
    training: Training, whole_run: str
) -> None:
    job_id = training.submit("killed")
    training.wait_for_step(job_id, "killed", 2)
    # Found before it is time, so that the run does not end meanwhile.
    victim, *others = ranks()
    assert len(others) == 1, "a rank a node"
    # In the second epoch, whose masks are others than the first's.
    training.wait_for_step(job_id, "killed", 2 * SAVED_EVERY + 1)
    victim.kill()
    said = training.wait(job_id, state="COMPLETED")
    assert f"resuming from {training.checkpoints('killed') / f'step-{2 * SAVED_EVERY:06d}'}" in said
    assert len((training.run_dir("killed") / "starts").read_text().splitlines()) == 2
    assert equal_parts(training.metrics("killed")) == equal_parts(training.metrics("whole"))


def test_it_saves_when_slurm_ends_it_and_goes_on_from_there(training: Training, whole_run: str) -> None:
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


@pytest.mark.parametrize(
    ("run", "env", "words"),
    [
        ("wrong", {"ROBERTA_WIDTH": "130"}, "ROBERTA_WIDTH 130 is no multiple of ROBERTA_HEADS 4"),
        ("wrong", {"KEEP_CHECKPOINTS": "100000000"}, "free: remove old runs"),
        ("wrong", {"VOCAB_SIZE": "20"}, "VOCAB_SIZE is 20; allowed: 300 to"),
        ("whole", {"ROBERTA_LAYERS": "3"}, "holds another model"),
        ("wrong", {"CORPUS": "books"}, 'CORPUS is "books"; allowed: wikitext-103, machine, raw'),
    ],
)
def test_a_wrong_setting_is_one_sentence(
    training: Training, whole_run: str, run: str, env: dict[str, str], words: str
) -> None:
    said = training.wait(training.submit(run, **env), state="FAILED")
    assert words in said
    # torchrun has its own traceback, of the failure of a rank.
    assert 'roberta/train.py", line' not in said


def test_a_checkpoint_of_another_dictionary_is_refused(training: Training, whole_run: str) -> None:
    progress = training.checkpoints("whole") / f"step-{STEPS:06d}" / "progress.json"
    other = training.checkpoints("other") / f"step-{STEPS:06d}"
    shutil.copytree(progress.parent, other)
    noted = json.loads(progress.read_text())
    (other / "progress.json").write_text(json.dumps(noted | {"dictionary_sha256": "0" * 64}))
    said = training.wait(training.submit("other"), state="FAILED")
    assert "was trained with another dict.txt" in said


def test_corrupt_data_is_refused_with_the_files_name(training: Training, whole_run: str) -> None:
    file = data_dir(training) / "raw-bpe-2048" / "train.bin"
    whole = file.read_bytes()
    try:
        file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        said = training.wait(training.submit("corrupt"), state="FAILED")
        assert f"{file} is corrupt: its sha256 is" in said
        file.write_bytes(whole[:-1])
        said = training.wait(training.submit("corrupt"), state="FAILED")
        assert f"{file} is {len(whole) - 1:,} bytes long" in said
    finally:
        file.write_bytes(whole)
    assert 'roberta/train.py", line' not in said
