"""Locks of workloads: environment.sh installs the packages whose hashes they have, and no others."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.step_machine import Machine, succeeds
from tools.workload_locks import Locked, render

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
REQUIREMENTS = "torch==1.0\ntinything==1.0\n"
OTHER = "0" * 64


class Tiny:
    """A workload of two packages, one of them named torch, with a lock; pip installs for real."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.folder = machine.bundle / "training" / "tiny"
        self.folder.mkdir()
        self.sums = {
            name: machine.wheel(name, "1.0", {f"{name}.py": "VALUE = 1\n"}, requires=requires)
            for name, requires in (("torch", ""), ("tinything", "tinybase"), ("tinybase", ""))
        }
        (self.folder / "requirements.txt").write_text(f"# Recipes: all\n# Budget: 600 s\n{REQUIREMENTS}")
        self.lock()

    def lock(self, *, python: str = HERE, requirements: str = REQUIREMENTS, **sums: str) -> None:
        packages = [
            Locked(name=name, version="1.0", sha256=value)
            for name, value in (self.sums | sums).items()
            if value
        ]
        (self.folder / "requirements.lock").write_text(render(requirements, {python: packages}))

    def make(self, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.machine.run("50", **{"WORKLOADS": "tiny", "RECIPE": "gpu", **environment})

    def installed(self) -> set[str]:
        return {file.stem for file in (self.machine.opt / "venvs" / "tiny").rglob("t*.py")} & set(self.sums)

    def stamp(self) -> Path:
        return self.machine.opt / "venvs" / "tiny" / "requirements.sha256"


def refuses(done: subprocess.CompletedProcess[str], words: str) -> None:
    assert done.returncode != 0, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def tiny(machine: Machine) -> Tiny:
    return Tiny(machine)


def test_an_environment_is_made_by_the_first_python_of_its_lock(tiny: Tiny, tmp_path: Path) -> None:
    """The stand-in says what its name says, as Ubuntu 22.04's python3 beside an installed python3.12."""
    tiny.lock(python="3.12")
    for version in ("3.10", "3.12"):
        python = tmp_path / f"python{version}"
        python.write_text(f"#!/bin/sh\necho {version}\n")
        python.chmod(0o755)
    script = f"source {tiny.machine.bundle}/training/environment.sh; find_python {tiny.folder}"

    def found(*pythons: str, **environment: str) -> subprocess.CompletedProcess[str]:
        names = " ".join(f"{tmp_path}/python{each}" for each in pythons)
        return subprocess.run(
            ["bash", "-c", script],
            env={"PATH": os.environ["PATH"], "TRAINING_PYTHON": names, **environment},
            capture_output=True,
            text=True,
        )

    assert found("3.10", "3.12").stdout == f"{tmp_path}/python3.12\n"
    refuses(found("3.10"), "no Python 3.12 on ")
    assert "for the environment of tiny" in found("3.10").stderr
    assert found("3.10", TRAINING_REHEARSAL="1").stdout == f"{tmp_path}/python3.10\n"
    (tiny.folder / "requirements.lock").unlink()
    assert found("3.10", "3.12").stdout == f"{tmp_path}/python3.10\n"


@pytest.mark.slow
def test_what_the_lock_has_is_installed(tiny: Tiny) -> None:
    done = tiny.make()
    succeeds(done)
    assert tiny.installed() == set(tiny.sums)
    assert "unchecked" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["torch", "tinything", "tinybase"])
def test_a_package_of_another_content_is_not_installed(tiny: Tiny, name: str) -> None:
    tiny.lock(**{name: OTHER})
    refuses(tiny.make(), "DO NOT MATCH THE HASHES")
    assert not tiny.stamp().exists()


@pytest.mark.slow
def test_a_package_that_the_lock_lacks_is_not_installed(tiny: Tiny) -> None:
    tiny.lock(tinybase="")
    refuses(tiny.make(), "In --require-hashes mode, all requirements must have their versions pinned")


@pytest.mark.slow
def test_a_rehearsal_may_have_another_torch_and_checks_all_else(tiny: Tiny) -> None:
    tiny.lock(torch=OTHER)
    succeeds(tiny.make(TRAINING_REHEARSAL="1"))
    tiny.lock(torch=OTHER, tinything=OTHER)
    shutil.rmtree(tiny.stamp().parent)
    refuses(tiny.make(TRAINING_REHEARSAL="1"), "DO NOT MATCH THE HASHES")


@pytest.mark.slow
def test_a_lock_of_other_requirements_is_refused(tiny: Tiny) -> None:
    tiny.lock(requirements="tinything==0.9\n")
    refuses(tiny.make(), "requirements.lock was not made from the requirements.txt beside it")


@pytest.mark.slow
def test_a_lock_for_another_python_is_refused_on_a_node_and_unused_in_a_rehearsal(tiny: Tiny) -> None:
    tiny.lock(python="3.1", torch=OTHER, tinything=OTHER)
    refuses(tiny.make(), "no Python 3.1 on ")
    done = tiny.make(TRAINING_REHEARSAL="1")
    succeeds(done)
    assert "no hash is checked" in done.stderr
    # An environment that exists keeps its Python.
    tiny.lock(python="3.1")
    refuses(tiny.make(), f"requirements.lock is not for Python {HERE} on x86_64. Allowed, on x86_64: 3.1.")


@pytest.mark.slow
def test_a_workload_without_a_lock_says_that_nothing_is_checked(tiny: Tiny) -> None:
    (tiny.folder / "requirements.lock").unlink()
    done = tiny.make()
    succeeds(done)
    assert (
        "has no requirements.lock, so its packages are installed unchecked; make lock writes it"
        in done.stderr
    )
