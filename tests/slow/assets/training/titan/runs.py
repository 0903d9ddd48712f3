"""Runs of titan on two nodes of a real Slurm on this machine: fixtures of its tests."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.slow.assets.training.training import Training, hooked, training_on_slurm

STEPS, SAVED_EVERY = 12, 5
SETTINGS = {
    "MAX_STEPS": str(STEPS),
    "CHECKPOINT_EVERY": str(SAVED_EVERY),
    "WARMUP_STEPS": "2",
    "EVAL_EVERY": "6",
}
CHAT_TEMPLATE = (
    "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    folder = tmp_path_factory.mktemp("titan")
    with training_on_slurm(folder, workload="titan", env=SETTINGS, nodes=3) as training:
        yield training


@pytest.fixture(scope="module")
def whole_run(training: Training, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The rows of the steps of a run that nothing interrupts."""
    training.run("whole", PYTHONPATH=hooked(tmp_path_factory.mktemp("hooks")))
    return training.metrics("whole")


@pytest.fixture(scope="module")
def weights(training: Training, whole_run: list[dict[str, Any]]) -> Path:
    """The exported weights of that run, with a template of chats."""
    folder = training.run_dir("whole") / "export"
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE)
    return folder


def train_on_one_node(training: Training, run: str, *, ranks: int, **env: str) -> None:
    """Train a debug model on a node of several ranks, of which a rehearsal has none."""
    node = {"TRAINING_REHEARSAL": "0", "NPROC_PER_NODE": str(ranks), "DEVICE": "cpu", "OMP_NUM_THREADS": "1"}
    small = {
        "SIZE": "debugmodel",
        "DATA": "machine",
        "VOCAB_SIZE": "2048",
        "SEQ_LEN": "64",
        "BATCH_SIZE": "4",
    }
    precision = ("--mixed-precision", "no")
    job_id = training.submit(run, "--nodes=1", arguments=precision, **{**node, **small, **env})
    training.wait(job_id, state="COMPLETED")
