"""bert-trainium's shell scripts on a node of Trainium: what they start, by programs that note it."""

import getpass
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.unit.assets.training.shell import bash, printed
from tests.unit.assets.training.workload_modules import BERT
from training_cluster.paths import TRAINING

NODE = {
    "ACCELERATOR_KIND": "neuron",
    "IMAGE_RECIPE": "neuron",
    "LAUNCHER": "torchrun",
    "MASTER_ADDR": "10.0.0.7",
    "MASTER_PORT": "12017",
    "NNODES": "2",
    "NPROC_PER_NODE": "32",
    "EXPECTED_WORLD_SIZE": "64",
    "SLURM_NODEID": "0",
}
# In the place of the environment's programs: each notes how it was called.
PYTHON = """#!/usr/bin/env bash
if [[ $1 == -c ]]; then exit 0; fi
if [[ $* == *compile_cache.py* ]]; then exec python3 "$@"; fi
{ printf 'python %s\\n' "$*"; env | grep -E '^(NEURON|PJRT|PATH=)'; } >>"$NOTES"
"""
COMPILER = """#!/usr/bin/env bash
printf 'compiler %s\\n' "${*:1:2}" >>"$NOTES"
if [[ $2 == collect ]]; then
  NEURON_EXTRACT_GRAPHS_ONLY=1 "${@:3}"
elif [[ -z ${BROKEN:-} ]]; then
  graph="$NEURON_COMPILE_CACHE_URL/neuronxcc-2/MODULE_1"
  mkdir -p "$graph" && touch "$graph/model.neff"
fi
"""


class Node:
    """A node with the shared folder, and an environment whose programs only note how they are called."""

    def __init__(self, folder: Path) -> None:
        self.notes = folder / "notes"
        self.run_dir = folder / "runs" / "bert-trainium" / "job-1"
        self.venv = folder / "venvs" / "bert-trainium"
        self.run_dir.mkdir(parents=True)
        (self.venv / "bin").mkdir(parents=True)
        self.program("python", PYTHON)
        self.program("neuron_parallel_compile", COMPILER)
        self.env = {
            **NODE,
            "NOTES": str(self.notes),
            "RUN_DIR": str(self.run_dir),
            "TRAINING_VENVS": str(folder / "venvs"),
            "TRAINING_OPT": str(folder / "opt"),
        }

    def program(self, name: str, text: str) -> None:
        file = self.venv / "bin" / name
        file.write_text(text)
        file.chmod(0o755)

    def script(self, name: str, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        return bash('exec bash "$@"', BERT / name, *arguments, **self.env | env)

    def said(self) -> str:
        return self.notes.read_text() if self.notes.is_file() else ""


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_training_has_neurons_settings(node: Node) -> None:
    done = node.script("train.sh", "--seed", "1")
    assert done.returncode == 0, done.stderr
    said = node.said()
    assert "--nnodes 2 --node-rank 0 --nproc-per-node 32 --master-addr 10.0.0.7" in said
    assert "bert-trainium/train.py --seed 1" in said
    assert f"NEURON_COMPILE_CACHE_URL={node.run_dir.parent}/neuron-compile-cache-{getpass.getuser()}" in said
    # An address, and a port below those of outgoing connections, so that none has to be reserved.
    assert "NEURON_RT_ROOT_COMM_ID=10.0.0.7:22017" in said
    assert "NEURON_CC_FLAGS=--auto-cast=none --model-type=transformer" in said
    assert f"PATH={node.venv}/bin:" in said
    assert "compiler" not in said
    node.notes.unlink()
    node.script("train.sh", NEURON_COMPILE_CACHE_URL="s3://b/cache", NEURON_CC_FLAGS="-O1")
    assert {"NEURON_COMPILE_CACHE_URL=s3://b/cache", "NEURON_CC_FLAGS=-O1"} <= {*node.said().splitlines()}
    node.notes.unlink()
    assert node.script("train.sh", DEVICE="cpu").returncode == 0
    assert "NEURON" not in node.said()


@pytest.mark.parametrize(("number", "compiles"), [("0", True), ("1", False)])
def test_a_precompilation_compiles_on_the_first_node(node: Node, number: str, compiles: bool) -> None:
    done = node.script("train.sh", PRECOMPILE="1", SLURM_NODEID=number)
    assert done.returncode == 0, done.stderr
    said = node.said()
    assert said.startswith("compiler --command collect\n")
    assert said.count("--nproc-per-node 32") == 1
    assert ("compiler --command compile" in said) is compiles
    assert ("precompiled: 1 graphs in " in done.stdout) is compiles
    # The watch for hangs waits for the compiler.
    busy = node.run_dir / "busy"
    assert (busy.is_file() and busy.stat().st_mtime > time.time() + 80_000) is compiles


def test_a_precompilation_that_fails_says_so(node: Node) -> None:
    done = node.script("train.sh", PRECOMPILE="1", BROKEN="1")
    assert done.returncode == 1
    assert "PRECOMPILE: no graph was compiled into " in done.stderr
    node.notes.unlink()
    node.program("python", '#!/bin/sh\n[ "$1" = -c ] || exit 7\n')
    assert node.script("train.sh", PRECOMPILE="1").returncode == 7
    assert "--command compile" not in node.said()


def installed(node: Node, **env: str) -> subprocess.CompletedProcess[str]:
    """install.sh, as environment.sh calls it."""
    return node.script("install.sh", str(node.venv), **env)


def test_a_neuron_node_gets_torch_from_aws(node: Node) -> None:
    assert installed(node).returncode == 0
    assert "--extra-index-url https://pip.repos.neuron.amazonaws.com" in node.said()
    assert "torch-neuronx==2.9." in node.said()
    node.notes.unlink()
    assert installed(node, TRAINING_REHEARSAL="1").returncode == 0
    assert node.said().splitlines()[0].endswith("--disable-pip-version-check torch==2.13.0")
    (node.venv / "bin" / "neuron_parallel_compile").unlink()
    assert "brought no neuron_parallel_compile" in installed(node).stderr


def test_environments_of_trainium_and_cpus_differ(node: Node) -> None:
    """Nodes share the folder: a CPU node prepares data, a Trainium node trains."""
    script = 'source "$1/environment.sh"; environment_of "$1/bert-trainium"'
    for name, value, environment in (
        ("IMAGE_RECIPE", "neuron", "bert-trainium"),
        ("TRAINING_REHEARSAL", "1", "bert-trainium-cpu"),
        ("IMAGE_RECIPE", "cpu", "bert-trainium-cpu"),
    ):
        found = printed(script, TRAINING, **node.env | {name: value})
        assert found == f"{node.venv.parent / environment}\n"


def test_a_wrong_setting_installs_nothing(node: Node) -> None:
    shutil.rmtree(node.venv)
    done = node.script("prepare.sh", BATCH_SIZE="0")
    assert done.returncode == 1
    assert "BATCH_SIZE is 0: give 1 or more." in done.stderr
    assert "making the Python environment" not in done.stderr
