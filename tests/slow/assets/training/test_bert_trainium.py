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
    check_that_divergence_ends_a_run,
    losses,
    ranks,
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


def test_bert_trains_on_two_nodes_as_one_world_and_its_loss_falls(
    training: Training, whole_run: list[dict[str, Any]]
) -> None:
    assert [row["step"] for row in whole_run] == list(range(1, STEPS + 1))
    assert {row["world_size"] for row in whole_run} == {2}
    # Two ranks, two micro-steps of 8 sequences of 64 tokens.
    assert whole_run[-1]["tokens"] == STEPS * 2 * 2 * 8 * 64
    assert whole_run[-1]["loss"] < whole_run[0]["loss"] - 0.5
    assert (training.run_dir("whole") / "outcome").read_text() == "finished\n"
    assert (training.checkpoints("whole") / "latest_step").read_text() == f"{STEPS}\n"
    kept = sorted(folder.name for folder in training.checkpoints("whole").glob("step-*"))
    assert kept == ["step-000010", f"step-{STEPS:06d}"]
    validations = training.validations("whole")
    assert [row["step"] for row in validations] == [6, 12, STEPS]
    assert validations[-1]["val_loss"] < validations[0]["val_loss"]


def test_bert_killed_in_the_middle_starts_again_by_itself_and_gives_the_very_same_losses(
    training: Training, whole_run: list[dict[str, Any]]
) -> None:
    job_id = training.submit("killed")
    training.wait_for_step(job_id, "killed", 2)
    # Found before it is time, so that the run does not end meanwhile.
    victim, *others = ranks("bert-trainium")
    assert len(others) == 1, "a rank a node"
    training.wait_for_step(job_id, "killed", SAVED_EVERY + 1)
    victim.kill()
    said = training.wait(job_id, state="COMPLETED")
    assert f"resuming from {training.checkpoints('killed') / 'step-000005'}" in said
    assert len((training.run_dir("killed") / "starts").read_text().splitlines()) == 2
    assert losses(training.metrics("killed")) == losses(whole_run)
    whole, killed = training.validations("whole"), training.validations("killed")
    assert [row["val_loss"] for row in killed] == [row["val_loss"] for row in whole]


def test_bert_ends_at_a_loss_that_is_not_finite_before_a_checkpoint_has_it(training: Training) -> None:
    check_that_divergence_ends_a_run(training)


def test_bert_saves_when_slurm_ends_it_and_is_not_taken_up_with_another_model(
    training: Training, whole_run: list[dict[str, Any]]
) -> None:
    job_id = training.submit("ended", MAX_STEPS="100000", CHECKPOINT_EVERY="100000")
    training.wait_for_step(job_id, "ended", 3)
    training.end(job_id)
    at = int((training.checkpoints("ended") / "latest_step").read_text())
    assert (training.run_dir("ended") / "outcome").read_text() == f"stopped {at}\n"
    job_id = training.submit("ended", BERT_LAYERS="3", MAX_RESTARTS="0")
    said = training.wait(job_id, state="FAILED")
    assert f"{training.checkpoints('ended') / f'step-{at:06d}'} holds another model" in said


def test_nodes_that_would_train_alone_are_refused_in_the_first_step(
    training: Training, whole_run: list[dict[str, Any]]
) -> None:
    other = training.shared.parent / "alone"
    shutil.copytree(TRAINING, other / "training")
    shutil.copytree(training.shared / "datasets", other / "datasets")
    script = other / "training" / "launch.sh"
    launch = '--nnodes "$NNODES" --node-rank "$SLURM_NODEID"'
    text = script.read_text(encoding="utf-8")
    assert launch in text
    script.write_text(text.replace(launch, "--standalone"), encoding="utf-8")
    job_id = training.submit("alone", TRAINING_SHARED=str(other), MAX_RESTARTS="0")
    said = training.wait(job_id, state="FAILED")
    assert "the world size is 1 and EXPECTED_WORLD_SIZE is 2, so nodes would train alone" in said


def python_of(training: Training) -> Path:
    """The interpreter of the workload's environment for CPUs."""
    return (
        Path(os.environ.get("TRAINING_VENVS", str(training.shared / "venvs")))
        / "bert-trainium-cpu/bin/python"
    )


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
    done = subprocess.run(
        [python_of(training), "-c", script, folder], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "True", "True"]


def test_the_watch_for_hangs_waits_in_the_steps_in_which_xla_compiles(
    training: Training, whole_run: list[dict[str, Any]]
) -> None:
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
        [python_of(training), "-c", script],
        cwd=training.run_dir("whole"),
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    waits = [line for line in done.stdout.splitlines() if line.endswith("True")]
    assert waits == ["xla-cpu 1 True", "xla-cpu 2 True"]


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"BERT_HEADS": "5"}, "BERT_WIDTH 128 is not a multiple of BERT_HEADS 5"),
        ({"DEVICE": "xla-cpu"}, "DEVICE=xla-cpu trains in one process, and this job has 2"),
        ({"CORPUS": "raw"}, "there is no text: put *.txt"),
    ],
)
def test_wrong_input_ends_in_a_sentence_before_the_ranks_start(
    training: Training, env: dict[str, str], said: str
) -> None:
    printed = training.wait(training.submit("wrong", MAX_RESTARTS="0", **env), state="FAILED")
    assert said in printed
    assert "Traceback" not in printed
    assert training.metrics("wrong") == []


def test_a_corrupt_shard_is_named(training: Training, whole_run: list[dict[str, Any]]) -> None:
    shards = training.shared / "datasets" / "bert-trainium" / "machine-vocab-2048-64"
    file = next(shards.glob("train-*.bin"))
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    said = training.wait(training.submit("corrupt", MAX_RESTARTS="0"), state="FAILED")
    file.write_bytes(whole)
    assert f"{file} is corrupt: its sha256 is" in said


with_xla = pytest.mark.skipif(
    os.environ.get("XLA") != "1", reason="XLA=1 and XLA_PYTHON name an environment of 7 GB"
)


@with_xla
def test_two_processes_of_xla_on_cpus_are_refused_since_each_would_train_a_model_of_its_own(
    tmp_path: Path,
) -> None:
    """The settings refuse them earlier; this is the check of the first step, which NeuronCores have, too."""
    script = tmp_path / "two.py"
    script.write_text("""
from pathlib import Path
from devices import XlaDevice
from trainkit.run.run import Run
run = Run.from_environment()
XlaDevice(run, "no").check()
""")
    env = os.environ | {"PYTHONPATH": f"{BERT}:{TRAINING}", "PYTHONDONTWRITEBYTECODE": "1"}
    env |= {"RUN_DIR": str(tmp_path), "DATA_DIR": str(tmp_path), "CHECKPOINT_DIR": str(tmp_path)}
    env |= {"EXPECTED_WORLD_SIZE": "2", "GLOO_SOCKET_IFNAME": "lo"}
    command = f'"$XLA_PYTHON" -m torch.distributed.run --nproc-per-node 2 --master-port 11934 {script}'
    done = subprocess.run(["bash", "-c", command], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode != 0
    assert "XLA's world size is 1 and EXPECTED_WORLD_SIZE is 2, so ranks would train alone" in done.stderr


@with_xla
def test_bert_trains_by_xla_on_a_cpu_and_a_resumed_run_gives_the_very_same_losses(
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
