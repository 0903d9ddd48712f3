"""torch for V100 GPUs, which assets/training/environment.sh takes from PyTorch's index for CUDA 12.6."""

import subprocess

import pytest

from tests.unit.assets.bootstrap.step_machine import Machine, succeeds
from training_cluster.catalog.versions import render_versions

CUDA_12, CUDA_13 = "2.14.1+cu126", "2.14.1"
WITH_VOLTA = "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90"


def torch(version: str, architectures: str) -> dict[str, str]:
    """Make the part of torch that is asked; one for CPUs, without architectures, lacks the function."""
    flags = (
        f"    _cuda_getArchFlags = staticmethod(lambda: {architectures!r})\n"
        if architectures
        else "    pass\n"
    )
    return {"torch/__init__.py": f"__version__ = {version!r}\n\n\nclass _C:\n{flags}"}


class Volta:
    """A workload with torch, a usual index and PyTorch's one; pip installs for real from both."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.folder = machine.bundle / "training" / "tiny"
        self.folder.mkdir()
        self.require(f"torch=={CUDA_13}\ntinything==1.0\n")
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

    def require(self, packages: str) -> None:
        (self.folder / "requirements.txt").write_text(f"# Recipes: all\n# Budget: 600 s\n{packages}")

    def make(self, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.machine.run("50", **{"WORKLOADS": "tiny", "RECIPE": "volta", **environment})

    def installed(self) -> list[str]:
        """Return the version of torch, and the index that the other package is from."""
        code = "import tinything, torch; print(torch.__version__, tinything.FROM)"
        command = [str(self.venv / "bin" / "python"), "-c", code]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()

    def in_job(self, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.machine.in_job(code, "tiny", **{"IMAGE_RECIPE": "volta", **environment})


@pytest.fixture
def volta(machine: Machine) -> Volta:
    return Volta(machine)


@pytest.mark.slow
def test_torch_alone_comes_from_pytorchs_index(volta: Volta) -> None:
    """Other nodes and rehearsals have the usual torch, which a volta node does not take for its own."""
    for others in ({"RECIPE": "gpu"}, {"TRAINING_REHEARSAL": "1"}):
        succeeds(volta.make(**others))
        assert volta.installed() == [CUDA_13, "pypi"]
    succeeds(volta.make())
    assert volta.installed() == [CUDA_12, "pypi"]
    before = volta.machine.files()
    succeeds(volta.make(PIP_INDEX_URL="file:///nowhere"))
    assert volta.machine.files() == before
    pinned = f"{CUDA_12}.1"
    volta.machine.publish("cu126", "torch", pinned, torch(pinned, WITH_VOLTA))
    succeeds(volta.make(TORCH_VOLTA_VERSION=pinned))
    assert volta.installed() == [pinned, "pypi"]


@pytest.mark.slow
@pytest.mark.parametrize(("architectures", "only"), [("sm_75 sm_90", "sm_75 sm_90"), ("", "CPUs")])
def test_a_torch_without_v100_code_is_refused(volta: Volta, architectures: str, only: str) -> None:
    volta.machine.publish("cu126", "torch", CUDA_12, torch(CUDA_12, architectures))
    done = volta.make()
    words = f"torch {CUDA_12} has no code for V100 GPUs (sm_70), only for: {only}. Take a build for CUDA 12.6"
    assert (done.returncode != 0, words in done.stderr, "Traceback" in done.stderr) == (True, True, False)
    assert not (volta.venv / "requirements.sha256").exists()


def test_another_torch_than_the_pinned_is_refused(volta: Volta) -> None:
    volta.require("torch==2.15.0\n")
    pins = {"TORCH_VOLTA_VERSION": CUDA_12, "TORCH_VOLTA_INDEX": volta.url("cu126")}
    done = volta.in_job('fill_environment "$1" "$TRAINING_VENVS"', **pins)
    wanted = f"asks for torch 2.15.0, and nodes with V100 GPUs have {CUDA_12}: change it, or torch_volta in"
    assert (done.returncode, wanted in done.stderr) == (1, True)


@pytest.mark.slow
def test_a_job_reads_the_bundles_pins(volta: Volta) -> None:
    make = 'venv="$(environment_of "$1")"; make_environment "$1" "$venv"; echo "$venv"'
    lacking = volta.in_job('make_environment "$1" "$TRAINING_VENVS/tiny-volta"')
    assert (lacking.returncode, "bundles/current/versions.env" in lacking.stderr) == (1, True)
    bundle = volta.machine.opt / "bundles" / "current"
    bundle.mkdir(parents=True)
    pins = render_versions().replace("https://download.pytorch.org/whl/cu126", volta.url("cu126"))
    (bundle / "versions.env").write_text(pins)
    made = volta.in_job(f'{make}; echo "${{!TORCH_@}}${{!NVIDIA_@}}"')
    succeeds(made)
    shared = volta.machine.folder / "fsx" / "venvs"
    volta.venv = shared / "tiny-volta"
    assert made.stdout.split() == [str(volta.venv)]
    assert volta.installed() == [CUDA_12, "pypi"]
    other = volta.in_job('environment_of "$1"', IMAGE_RECIPE="cpu").stdout.strip()
    assert other == str(shared / "tiny"), "nodes of another torch share another folder"
    succeeds(volta.make())
    of_the_image = volta.in_job('environment_of "$1"')
    assert of_the_image.stdout.strip() == str(volta.machine.opt / "venvs" / "tiny"), of_the_image.stderr
