"""nccl-tests' shell scripts: which device they measure, and where they find libraries."""

import subprocess
from pathlib import Path

import pytest

from tests.unit.assets.training.shell import bash
from training_cluster.paths import TRAINING

NCCL = TRAINING / "nccl-tests"
# In the place of the compiled test: it prints what its loader gets.
ALL_REDUCE_PERF = '#!/bin/bash\necho "nccl-tests $LD_LIBRARY_PATH"\n'
COMPILED = {"MEASURE_WITH": "nccl-tests"}
PYTHON = """#!/bin/bash
echo "python $* for $MEASURED_DEVICE as rank $RANK, NCCL_DEBUG=$NCCL_DEBUG"
echo "libraries: ${LD_LIBRARY_PATH:-as they are}"
"""


class Node:
    """A node of a GPU family, without GPUs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.opt = folder, folder / "opt"
        self.env = {
            "ACCELERATOR_KIND": "gpu",
            "LAUNCHER": "srun",
            "MASTER_ADDR": "node-1",
            "SLURM_PROCID": "0",
            "SLURM_LOCALID": "0",
            "EXPECTED_WORLD_SIZE": "2",
            "NPROC_PER_NODE": "1",
            "RUN_DIR": str(folder / "run"),
            "TRAINING_VENVS": str(folder / "venvs"),
            "TRAINING_OPT": str(self.opt),
            "TRAINING_ROOT": str(folder / "root"),
        }

    def run(self, script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return bash('exec bash "$@"', NCCL / script, *arguments, **self.env | environment)

    def compile_tests(self) -> None:
        program = self.opt / "bin" / "all_reduce_perf"
        program.parent.mkdir(parents=True)
        program.write_text(ALL_REDUCE_PERF)
        program.chmod(0o755)


def test_compiled_tests_measure_between_gpus(tmp_path: Path) -> None:
    node = Node(tmp_path)
    alone = node.run("prepare.sh", EXPECTED_WORLD_SIZE="1")
    assert (alone.returncode, "Give --nodes 2, or a type with more GPUs." in alone.stderr) == (1, True)
    refused = node.run("prepare.sh", **COMPILED).stderr
    assert "has no all_reduce_perf: the image build compiles it" in refused
    assert "Deploy with -c image=build, or measure with torch: MEASURE_WITH=torch sbatch" in refused
    node.compile_tests()
    assert node.run("prepare.sh", **COMPILED).returncode == 0
    assert not (tmp_path / "venvs").exists(), "an environment is for torch"
    for device in ("cuda", "gpu", ""):
        assert "nccl-tests " in node.run("train.sh", **COMPILED, DEVICE=device).stdout
    # Where the installer of EFA puts libraries on each system.
    for lib in ("lib", "lib64"):
        folders = [tmp_path / "root/opt/amazon" / name / lib for name in ("ofi-nccl", "efa", "openmpi")]
        for folder in folders:
            folder.mkdir(parents=True)
        said = node.run("train.sh", **COMPILED).stdout
        assert sorted(said.split()[-1].split(":")) == sorted(map(str, folders))
        for folder in folders:
            folder.rmdir()


@pytest.mark.parametrize(
    ("workload", "program"), [("nccl-tests", "torch"), ("titan", "torch"), ("titan", "product")]
)
def test_torch_measures_with_the_libraries_of_a_workload(tmp_path: Path, workload: str, program: str) -> None:
    node = Node(tmp_path)
    venv = tmp_path / "venvs" / workload
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").write_text(PYTHON)
    (venv / "bin" / "python").chmod(0o755)
    (tmp_path / "root/opt/amazon/efa/lib").mkdir(parents=True)
    said = node.run("train.sh", "-n", "50", ENVIRONMENT_OF=workload, MEASURE_WITH=program).stdout
    script = "product.py" if program == "product" else "all_reduce.py"
    assert f"python -B {NCCL}/{script} -n 50 for gpu as rank 0, NCCL_DEBUG=INFO" in said
    assert "libraries: as they are" in said


def test_other_words_are_refused_at_once(tmp_path: Path) -> None:
    for setting, said in (
        ({"MEASURE_WITH": "nccl"}, 'MEASURE_WITH is "nccl"; allowed: torch, nccl-tests, product.'),
        ({"ENVIRONMENT_OF": "gpt3"}, 'ENVIRONMENT_OF is "gpt3", which is not a workload with torch'),
        ({"ENVIRONMENT_OF": "../gpt2"}, 'ENVIRONMENT_OF is "../gpt2", which is not a workload with torch'),
        ({"DEVICE": "gpus"}, 'DEVICE is "gpus"; allowed: cuda, cpu'),
        (
            {"MEASURE_WITH": "product", "LAUNCHER": "sweep"},
            "a sweep compares all-reduces, and MEASURE_WITH=product makes none",
        ),
    ):
        done = Node(tmp_path).run("prepare.sh", **setting)
        assert (done.returncode, list(tmp_path.iterdir())) == (1, [])
        assert f"prepare.sh: {said}" in done.stderr
