"""torch for V100 GPUs, which assets/training/environment.sh takes from PyTorch's index for CUDA 12.6."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.step_machine import Machine, succeeds
from training_cluster.catalog.versions import render_versions

CUDA_12, CUDA_13 = "2.13.0+cu126", "2.13.0"
WITH_VOLTA = "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90"


def torch(version: str, architectures: str) -> dict[str, str]:
    """Make the part of torch that is asked; one for CPUs, without architectures, lacks the function."""
    asked = (
        f"    _cuda_getArchFlags = staticmethod(lambda: {architectures!r})\n"
        if architectures
        else "    pass\n"
    )
    return {"torch/__init__.py": f"__version__ = {version!r}\n\n\nclass _C:\n{asked}"}


class Volta:
    """A workload with torch, a usual index and PyTorch's one; pip installs for real from both."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.folder = machine.bundle / "training" / "tiny"
        self.folder.mkdir()
        self.wants("torch==2.13.0\ntinything==1.0\n")
        self.venv = machine.opt / "venvs" / "tiny"
        machine.publish("pypi", "torch", CUDA_13, torch(CUDA_13, "sm_75 sm_90"))
        machine.publish("pypi", "tinything", "1.0", {"tinything.py": "FROM = 'pypi'\n"})
        machine.publish("cu126", "torch", CUDA_12, torch(CUDA_12, WITH_VOLTA))
        machine.publish("cu126", "tinything", "1.0", {"tinything.py": "FROM = 'cu126'\n"})
        for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS"):
            del machine.environment[name]
        machine.environment |= {"PIP_INDEX_URL": self.url("pypi"), "TORCH_VOLTA_INDEX": self.url("cu126")}

    def url(self, index: str) -> str:
        return f"file://{self.machine.folder / index}"

    def wants(self, packages: str) -> None:
        (self.folder / "requirements.txt").write_text(f"# Recipes: all\n# Budget: 600 s\n{packages}")

    def make(self, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.machine.run("50", **{"WORKLOADS": "tiny", "RECIPE": "volta", **environment})

    def has(self) -> list[str]:
        """The version of torch, and the index that the other package is from."""
        code = "import tinything, torch; print(torch.__version__, tinything.FROM)"
        done = subprocess.run(
            [self.venv / "bin" / "python", "-c", code], check=True, capture_output=True, text=True
        )
        return done.stdout.split()

    def in_job(self, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run shell code after environment.sh, as a job's scripts do: with the node's facts, without pins."""
        pins = re.findall(r"^export (\w+)=", render_versions(), re.MULTILINE)
        job = {name: value for name, value in self.machine.environment.items() if name not in pins}
        job |= {"IMAGE_RECIPE": "volta", "TRAINING_VENVS": str(self.machine.folder / "fsx"), **environment}
        return subprocess.run(
            ["bash", "-euc", f'source "$1/environment.sh"; {code}', "_", str(self.folder.parent)],
            env=job,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def volta(machine: Machine) -> Volta:
    return Volta(machine)


@pytest.mark.slow
def test_torch_alone_comes_from_pytorchs_index(volta: Volta) -> None:
    succeeds(volta.make())
    assert volta.has() == [CUDA_12, "pypi"]
    before = volta.machine.files()
    succeeds(volta.make(PIP_INDEX_URL="file:///nowhere"))
    assert volta.machine.files() == before


@pytest.mark.slow
@pytest.mark.parametrize("environment", [{"RECIPE": "gpu"}, {"RECIPE": "cpu"}, {"TRAINING_REHEARSAL": "1"}])
def test_other_nodes_and_rehearsals_take_the_usual_torch_unchecked(
    volta: Volta, environment: dict[str, str]
) -> None:
    succeeds(volta.make(**environment))
    assert volta.has() == [CUDA_13, "pypi"]


@pytest.mark.slow
@pytest.mark.parametrize(("architectures", "only"), [("sm_75 sm_90", "sm_75 sm_90"), ("", "CPUs")])
def test_a_torch_without_code_for_v100_is_refused(volta: Volta, architectures: str, only: str) -> None:
    volta.machine.publish("cu126", "torch", CUDA_12, torch(CUDA_12, architectures))
    done = volta.make()
    assert done.returncode != 0
    said = f"torch {CUDA_12} has no code for V100 GPUs (sm_70), only for: {only}. Take a build for CUDA 12.6"
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (volta.venv / "requirements.sha256").exists()


def test_a_workload_that_asks_for_another_torch_than_the_pinned_one_is_refused(volta: Volta) -> None:
    volta.wants("torch==2.15.0\n")
    done = volta.make()
    assert done.returncode != 0
    assert "requirements.txt asks for torch 2.15.0" in done.stderr
    assert f"nodes with V100 GPUs have {CUDA_12}: change it, or torch_volta in" in done.stderr


@pytest.mark.slow
def test_a_workload_without_torch_gets_none_and_is_the_same_on_all_nodes(volta: Volta) -> None:
    volta.wants("tinything==1.0\n")
    succeeds(volta.make(TORCH_VOLTA_INDEX="file:///nowhere"))
    before = volta.machine.files()
    succeeds(volta.make(RECIPE="gpu", PIP_INDEX_URL="file:///nowhere"))
    assert volta.machine.files() == before


@pytest.mark.slow
def test_another_pin_makes_the_environment_anew(volta: Volta) -> None:
    succeeds(volta.make())
    volta.machine.publish("cu126", "torch", "2.13.0+cu126.1", torch("2.13.0+cu126.1", WITH_VOLTA))
    succeeds(volta.make(TORCH_VOLTA_VERSION="2.13.0+cu126.1"))
    assert volta.has() == ["2.13.0+cu126.1", "pypi"]


@pytest.mark.slow
def test_an_environment_of_another_torch_is_not_that_of_a_volta_node(volta: Volta) -> None:
    succeeds(volta.make(RECIPE="gpu"))
    succeeds(volta.make())
    assert volta.has() == [CUDA_12, "pypi"]


@pytest.mark.slow
def test_a_job_finds_the_pins_in_its_nodes_bundle_and_keeps_them_to_that(volta: Volta) -> None:
    bundle = volta.machine.opt / "bundles" / "current"
    bundle.mkdir(parents=True)
    pins = render_versions().replace("https://download.pytorch.org/whl/cu126", volta.url("cu126"))
    (bundle / "versions.env").write_text(pins)
    make = 'venv="$(environment_of "$1/tiny")"; make_environment "$1/tiny" "$venv"; echo "$venv"'
    made = volta.in_job(f'{make}; echo "${{!TORCH_@}}${{!NVIDIA_@}}"')
    succeeds(made)
    volta.venv = volta.machine.folder / "fsx" / "tiny-volta"
    assert made.stdout.split() == [str(volta.venv)]
    assert volta.has() == [CUDA_12, "pypi"]
    succeeds(volta.make())
    of_the_image = volta.in_job('environment_of "$1/tiny"')
    assert of_the_image.stdout.strip() == str(volta.machine.opt / "venvs" / "tiny"), of_the_image.stderr


def test_nodes_of_another_torch_share_another_folder(volta: Volta) -> None:
    shared = Path(volta.in_job('environment_of "$1/tiny"', IMAGE_RECIPE="cpu").stdout.strip())
    assert shared == volta.machine.folder / "fsx" / "tiny"


def test_a_job_on_a_node_without_pins_says_which_file_lacks(volta: Volta) -> None:
    done = volta.in_job('make_environment "$1/tiny" "$TRAINING_VENVS/tiny-volta"')
    assert done.returncode != 0
    assert "bundles/current/versions.env" in done.stderr
