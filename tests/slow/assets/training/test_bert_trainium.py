"""The bert-trainium workload on two nodes of a real Slurm on this machine, and by XLA if that is asked for.

XLA=1 also trains by PyTorch/XLA on this machine's CPU, in one process. It needs an interpreter that has
torch_xla 2.9, transformers and tokenizers (some 7 GB): XLA_PYTHON=/my/venv/bin/python.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.slow.assets.training.training import (
    Training,
    check_that_a_killed_run_resumes,
    check_that_divergence_ends_a_run,
    check_whole_run,
    losses,
    training_on_slurm,
)
from training_cluster.paths import TRAINING

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(1800)]

BERT = TRAINING / "bert-trainium"
STEPS, SAVED_EVERY = 14, 5
SETTINGS = {
    "MAX_STEPS": str(STEPS),
    "CHECKPOINT_EVERY": str(SAVED_EVERY),
    "WARMUP_STEPS": "2",
    "LEARNING_RATE": "4e-3",
    "EVAL_EVERY": "6",
    # Dropout draws random numbers: equal losses then show that these are drawn again.
    "BERT_DROPOUT": "0.1",
}


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    folder = tmp_path_factory.mktemp("bert")
    with training_on_slurm(folder, workload="bert-trainium", env=SETTINGS) as training:
        yield training


@pytest.fixture(scope="module")
def whole_run(training: Training) -> list[dict[str, Any]]:
    """The metrics of a run that nothing interrupts."""
    training.run("whole")
    return training.metrics("whole")


def test_two_nodes_train_as_one_world(training: Training, whole_run: list[dict[str, Any]]) -> None:
    check_whole_run(training, steps=STEPS)
    # Two ranks, two micro-steps of 8 sequences of 64 tokens.
    assert whole_run[-1]["tokens"] == STEPS * 2 * 2 * 8 * 64
    kept = sorted(folder.name for folder in training.checkpoints("whole").glob("step-*"))
    assert kept == ["step-000010", f"step-{STEPS:06d}"]
    validations = training.validations("whole")
    assert [row["step"] for row in validations] == [6, 12, STEPS]
    assert validations[-1]["val_loss"] < validations[0]["val_loss"]


def test_a_killed_run_gives_the_same_losses(training: Training, whole_run: list[dict[str, Any]]) -> None:
    check_that_a_killed_run_resumes(training)
    whole, killed = training.validations("whole"), training.validations("kill")
    assert [row["val_loss"] for row in killed] == [row["val_loss"] for row in whole]


def test_a_run_that_diverges_ends(training: Training) -> None:
    check_that_divergence_ends_a_run(training)


def test_a_cancelled_run_refuses_another_model(training: Training, whole_run: list[dict[str, Any]]) -> None:
    job_id = training.submit("ended", MAX_STEPS="100000", CHECKPOINT_EVERY="100000")
    training.wait_for_step(job_id, "ended", 3)
    training.end(job_id)
    at = int((training.checkpoints("ended") / "latest_step").read_text())
    assert (training.run_dir("ended") / "outcome").read_text() == f"stopped {at}\n"
    said = training.wait(training.submit("ended", BERT_LAYERS="3"), state="FAILED")
    found = training.checkpoints("ended") / f"step-{at:06d}"
    assert f"not started again: {found} was trained with BERT_LAYERS=2, and this start has 3" in said


def test_a_checkpoint_is_a_folder_that_transformers_reads(
    training: Training, whole_run: list[dict[str, Any]]
) -> None:
    folder = training.checkpoints("whole") / f"step-{STEPS:06d}"
    script = (
        "import sys; from transformers import BertForPreTraining as B; "
        "m, i = B.from_pretrained(sys.argv[1], output_loading_info=True); "
        "e = m.bert.embeddings.word_embeddings.weight; "
        "print(not i['missing_keys'], not i['unexpected_keys'], m.cls.predictions.decoder.weight is e)"
    )
    done = subprocess.run([training.python, "-c", script, folder], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "True"]


def test_the_watch_for_hangs_waits_for_xla(training: Training, whole_run: list[dict[str, Any]]) -> None:
    script = """
from types import SimpleNamespace
from pathlib import Path
from devices import CpuDevice, XlaDevice
run = SimpleNamespace(run_dir=Path.cwd(), is_first=True)
for kind in (CpuDevice, XlaDevice):
    device = object.__new__(kind)
    device._run = run
    for step in (1, 2, 3):
        with device.compiling(step):
            print(kind.kind, step, Path("busy").exists())
        assert not Path("busy").exists()
"""
    environment = os.environ | {"PYTHONPATH": f"{BERT}:{TRAINING}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [training.python, "-c", script],
        cwd=training.run_dir("whole"),
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    waits = [line for line in done.stdout.splitlines() if line.endswith("True")]
    assert waits == ["xla-cpu 1 True", "xla-cpu 2 True"]


with_xla = pytest.mark.skipif(
    os.environ.get("XLA") != "1", reason="XLA=1 and XLA_PYTHON name an environment of 7 GB"
)


@with_xla
def test_xla_on_a_cpu_resumes_with_equal_losses(
    training: Training, whole_run: list[dict[str, Any]], tmp_path: Path
) -> None:
    whole = train_by_xla(training, tmp_path / "whole")
    assert whole[-1]["loss"] < whole[0]["loss"] - 0.5
    assert {row["world_size"] for row in whole} == {1}
    at = f"step-{SAVED_EVERY:06d}"
    shutil.copytree(tmp_path / "whole" / "checkpoints" / at, tmp_path / "resumed" / "checkpoints" / at)
    assert losses(train_by_xla(training, tmp_path / "resumed")) == losses(whole[SAVED_EVERY:])


def train_by_xla(training: Training, folder: Path) -> list[dict[str, Any]]:
    """train.py as one rank on XLA's CPU, with the data of the Slurm runs; its metrics."""
    (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(training.run_dir("whole") / "data.json", folder / "data.json")
    env = os.environ | SETTINGS
    env |= {
        "DEVICE": "xla-cpu",
        "TRAINING_REHEARSAL": "1",
        "PYTHONPATH": str(TRAINING),
        "KEEP_CHECKPOINTS": "9",
    }
    env |= {"RUN_DIR": str(folder), "DATA_DIR": str(folder), "CHECKPOINT_DIR": str(folder / "checkpoints")}
    env |= {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "EXPECTED_WORLD_SIZE": "1"}
    env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "11933", "GLOO_SOCKET_IFNAME": "lo"}
    script = f'source "{BERT}/rehearsal.env"; exec "$XLA_PYTHON" -B "{BERT}/train.py"'
    subprocess.run(["bash", "-euo", "pipefail", "-c", script], env=env, check=True)
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if "val_loss" not in row]
