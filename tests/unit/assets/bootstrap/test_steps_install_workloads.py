"""Step 50 and assets/training/environment.sh: one way to environments for images, starts and jobs."""

import re
import subprocess

import pytest

from tests.unit.assets.bootstrap.step_machine import Machine, fails, succeeds
from training_cluster.paths import ASSETS


class Workload:
    """A workload of one small package, which pip installs for real."""

    def __init__(
        self, machine: Machine, *, recipes: str = "all", budget: str = "60 s", install: str = ""
    ) -> None:
        self.machine = machine
        self.folder = machine.bundle / "training" / "tiny"
        self.folder.mkdir()
        machine.wheel("tinything", "1.0", {"tinything.py": "VALUE = 1\n"})
        head = f"# Tiny.\n# Recipes: {recipes}\n# Budget: {budget}\n"
        (self.folder / "requirements.txt").write_text(f"{head}tinything==1.0\n")
        if install:
            (self.folder / "install.sh").write_text(install)
        self.venv = machine.opt / "venvs" / "tiny"

    def make(self, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.machine.run(
            "50", **{"WORKLOADS": "tiny", "RECIPE": "gpu", "NODE_TYPE": "Image", **environment}
        )

    def works(self) -> bool:
        done = subprocess.run([self.venv / "bin" / "python", "-c", "import tinything"], check=False)
        return done.returncode == 0


@pytest.mark.slow
def test_a_workloads_environment_is_made_once_and_then_without_network(machine: Machine) -> None:
    tiny = Workload(machine)
    succeeds(tiny.make())
    assert tiny.works()
    before = machine.files()
    (tiny.folder / "requirements.txt").write_text(
        (tiny.folder / "requirements.txt").read_text().replace("# Tiny.", "# Another comment.")
    )
    succeeds(tiny.make(PIP_FIND_LINKS=""))
    assert machine.files() == before


@pytest.mark.slow
def test_a_changed_requirement_is_installed(machine: Machine) -> None:
    tiny = Workload(machine)
    succeeds(tiny.make())
    machine.wheel("tinything", "2.0", {"tinything.py": "VALUE = 2\n"})
    file = tiny.folder / "requirements.txt"
    file.write_text(file.read_text().replace("1.0", "2.0"))
    succeeds(tiny.make())
    assert "VALUE = 2" in next(tiny.venv.rglob("tinything.py")).read_text()


@pytest.mark.slow
def test_an_environment_without_its_packages_is_finished_by_the_next_run(machine: Machine) -> None:
    tiny = Workload(machine)
    fails(tiny.make(PIP_FIND_LINKS=""), "could not create the environment of tiny")
    assert not (tiny.venv / "requirements.sha256").exists()
    succeeds(tiny.make())
    assert tiny.works()


@pytest.mark.slow
def test_an_install_script_gets_the_environment_and_its_own_budget(machine: Machine) -> None:
    slow = "# Budget: 1 s\nsleep 60\n"
    tiny = Workload(machine, budget="3 s", install=slow)
    fails(tiny.make(), "tiny was not complete within the 4 s")
    (tiny.folder / "install.sh").write_text('# Budget: 60 s\ntouch "$1/compiled"\n')
    succeeds(tiny.make())
    assert (tiny.venv / "compiled").is_file()


@pytest.mark.slow
def test_what_is_for_image_builds_alone_is_refused_at_a_nodes_start(machine: Machine) -> None:
    tiny = Workload(machine, install="# Moment: image\n# Budget: 60 s\n")
    done = tiny.make(NODE_TYPE="ComputeFleet")
    fails(done, "could not create the environment of tiny")
    assert "deploy with -c image=build" in done.stderr
    succeeds(tiny.make())


def test_a_workload_for_other_nodes_is_passed_over(machine: Machine) -> None:
    tiny = Workload(machine, recipes="cpu neuron")
    done = tiny.make()
    succeeds(done)
    assert "not for nodes of the recipe gpu" in done.stderr
    assert not tiny.venv.exists()


def test_a_workload_that_there_is_not_is_an_error(machine: Machine) -> None:
    fails(machine.run("50", WORKLOADS="gpt3", RECIPE="gpu"), "no workload gpt3")


def test_no_workloads_need_nothing(machine: Machine) -> None:
    succeeds(machine.run("50", WORKLOADS="", RECIPE="gpu"))


@pytest.mark.slow
def test_jobs_take_the_images_environment_only_while_it_is_of_their_scripts(machine: Machine) -> None:
    tiny = Workload(machine)
    succeeds(tiny.make())
    ask = ["bash", "-c", 'source "$1/environment.sh"; environment_of "$1/tiny"', "_", str(tiny.folder.parent)]
    environment = {**machine.environment, "TRAINING_VENVS": "/fsx/venvs"}

    def answer() -> str:
        return subprocess.run(ask, env=environment, capture_output=True, text=True, check=True).stdout.strip()

    assert answer() == str(tiny.venv)
    with (tiny.folder / "requirements.txt").open("a") as file:
        file.write("another==1.0\n")
    assert answer() == "/fsx/venvs/tiny"


@pytest.mark.slow
def test_a_jobs_prepare_script_makes_the_shared_environment_where_the_image_has_none(
    machine: Machine,
) -> None:
    tiny = Workload(machine)
    (tiny.folder / "prepare.sh").write_text((ASSETS / "training" / "gpt2" / "prepare.sh").read_text())
    (tiny.folder / "prepare.py").write_text("import sys, tinything\nprint(sys.prefix)\n")
    shared = machine.folder / "fsx" / "venvs"

    def prepare() -> str:
        done = subprocess.run(
            ["bash", str(tiny.folder / "prepare.sh")],
            env={**machine.environment, "NODE_TYPE": "ComputeFleet", "TRAINING_VENVS": str(shared)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert prepare() == str(shared / "tiny")
    machine.environment["PIP_FIND_LINKS"] = ""
    assert prepare() == str(shared / "tiny")
    machine.environment["PIP_FIND_LINKS"] = str(machine.folder / "wheels")
    succeeds(tiny.make())
    assert prepare() == str(tiny.venv)


def test_what_roberta_compiles_is_verified_before_it_runs(machine: Machine) -> None:
    """pip runs the archive's own code to build it, in an image build as root."""
    python = machine.folder / "venv" / "bin" / "python"
    for name in ("g++", "env"):
        machine.program(name, 'if [[ $1 == -u ]]; then shift 2; fi\nexec "$@"')
    header = machine.folder / "Python.h"
    header.touch()
    answer = f'if [[ $2 == -c ]]; then echo "{header.parent}"; else cat "${{@: -1}}"; fi'
    machine.program("python", answer, at=python)
    done = subprocess.run(
        ["bash", str(ASSETS / "training" / "roberta" / "install.sh"), str(python.parents[1])],
        env=machine.environment,
        capture_output=True,
        text=True,
    )
    succeeds(done)
    assert re.fullmatch(r"fairseq-fixed==\S+ --hash=sha256:[0-9a-f]{64}\n", done.stdout)
    assert "--require-hashes" in machine.calls()[-1]
