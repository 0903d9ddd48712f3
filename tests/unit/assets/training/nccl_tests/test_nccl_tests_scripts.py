"""nccl-tests' shell scripts: which device they measure, and where they find libraries."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from training_cluster.paths import TRAINING

NCCL = TRAINING / "nccl-tests"
# In the place of the compiled test: it prints what its loader gets.
ALL_REDUCE_PERF = '#!/bin/bash\necho "nccl-tests $LD_LIBRARY_PATH"\n'


class Node:
    """A node of a GPU family, without GPUs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.opt = folder, folder / "opt"
        self.env = {
            "PATH": os.environ["PATH"],
            "ACCELERATOR_KIND": "gpu",
            "LAUNCHER": "srun",
            "SLURM_PROCID": "0",
            "SLURM_LOCALID": "0",
            "EXPECTED_WORLD_SIZE": "1",
            "NPROC_PER_NODE": "1",
            "RUN_DIR": str(folder / "run"),
            "TRAINING_VENVS": str(folder / "venvs"),
            "TRAINING_OPT": str(self.opt),
            "TRAINING_ROOT": str(folder / "root"),
        }

    def run(self, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", NCCL / script], env={**self.env, **environment}, capture_output=True, text=True
        )

    def compile_tests(self) -> None:
        program = self.opt / "bin" / "all_reduce_perf"
        program.parent.mkdir(parents=True)
        program.write_text(ALL_REDUCE_PERF)
        program.chmod(0o755)


@pytest.mark.parametrize("device", ["cuda", "gpu", ""])
def test_either_word_for_a_gpu_measures_between_gpus(tmp_path: Path, device: str) -> None:
    node = Node(tmp_path)
    given = {"DEVICE": device} if device else {}
    assert "has no all_reduce_perf: the image build compiles it" in node.run("prepare.sh", **given).stderr
    node.compile_tests()
    assert node.run("prepare.sh", **given).returncode == 0
    assert not (tmp_path / "venvs").exists(), "an environment is for CPUs"
    assert "nccl-tests " in node.run("train.sh", **given).stdout


@pytest.mark.parametrize("script", ["prepare.sh", "train.sh"])
def test_another_word_for_a_device_is_refused(tmp_path: Path, script: str) -> None:
    done = Node(tmp_path).run(script, DEVICE="gpus")
    assert done.returncode == 1
    assert 'DEVICE is "gpus"; allowed: cuda, cpu' in done.stdout + done.stderr


@pytest.mark.parametrize("lib", ["lib", "lib64"])
def test_libraries_are_found_where_the_efa_installer_puts_them_on_each_system(
    tmp_path: Path, lib: str
) -> None:
    node = Node(tmp_path)
    node.compile_tests()
    folders = [tmp_path / "root/opt/amazon" / name / lib for name in ("ofi-nccl", "efa", "openmpi")]
    for folder in folders:
        folder.mkdir(parents=True)
    said = node.run("train.sh").stdout
    assert sorted(said.split()[-1].split(":")) == sorted(map(str, folders))
