"""The ends of each workload's trainer: 200 times two ranks, none of which fails."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from training_cluster.paths import ROOT, TRAINING

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(3600)]

ENDS = os.environ.get("ENDS", "200")
TEMPLATE = "byte-model"
# Modules that are imported once for all ranks, which takes seconds. DDP imports torch._dynamo at its start.
IMPORTS = {
    "gpt2": "torch transformers accelerate loop",
    "roberta": "torch torch._dynamo fairseq fairseq_run",
    "gpt2-megatron": "torch loop",
    "bert-trainium": "torch torch._dynamo transformers loop",
    "titan": "torch cpu:install config trainer exporting",
    TEMPLATE: "torch torch._dynamo torch.distributed.checkpoint",
}
SHORT = {
    "MAX_STEPS": "1",
    "WARMUP_STEPS": "0",
    "EVAL_SEQUENCES": "0",
    "EXPORT": "no",
    # Compiling the attention mask takes most of a start of titan; the end is the same without.
    "TORCHDYNAMO_DISABLE": "1",
    "TRAINING_REHEARSAL": "1",
}
# This program in the place of the ranks.
INSTEAD = """
supervise() { exec "$1" -B "$ENDS_PROGRAM" "$3"; }
"""
START = """\
set -euo pipefail
set -a
RUN_DIR="$ENDS_FROM"
CHECKPOINT_DIR="$ENDS_IN/none"
if [[ -f $1/rehearsal.env ]]; then source "$1/rehearsal.env"; fi
bash "$1/prepare.sh" >&2
RUN_DIR=""
NPROC_PER_NODE=2
exec bash "$1/train.sh"
"""


@pytest.mark.parametrize("workload", IMPORTS)
def test_all_ends_of_each_workload_are_clean(workload: str, tmp_path: Path) -> None:
    training, prepared, runs = (tmp_path / name for name in ("training", "prepared", "runs"))
    shutil.copytree(TRAINING, training)
    for folder in (prepared, runs, tmp_path / "data"):
        folder.mkdir()
    if workload == TEMPLATE:
        command = [sys.executable, "-m", "ops", "new-workload", TEMPLATE, "--into", str(training)]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    with (training / "launch.sh").open("a") as launch:
        launch.write(INSTEAD)
    env = {
        "TRAINING_VENVS": os.environ.get("TRAINING_VENVS", str(tmp_path / "venvs")),
        "DATA_DIR": str(tmp_path / "data"),
        "ENDS_PROGRAM": str(Path(__file__).with_name("ends_of_ranks.py")),
        "ENDS": ENDS,
        "ENDS_FROM": str(prepared),
        "ENDS_IN": str(runs),
        "ENDS_IMPORTS": IMPORTS[workload],
        "LAUNCHER": "srun",
        "MASTER_ADDR": "127.0.0.1",
        "NNODES": "1",
        "EXPECTED_WORLD_SIZE": "2",
        "ACCELERATOR_KIND": "none",
        "DEVICE": "cpu",
        "SLURM_PROCID": "0",
        "SLURM_LOCALID": "0",
        "PYTHONPATH": str(ROOT / "rehearsal" / "shims") if workload == "gpt2-megatron" else "",
    }
    done = subprocess.run(
        ["bash", "-c", START, "_", training / workload],
        env=os.environ | SHORT | env,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert done.stdout.endswith("failed ends: 0\n"), done.stdout[-4000:]
