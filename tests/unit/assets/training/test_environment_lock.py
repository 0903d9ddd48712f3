"""Locks of workloads: environment.sh installs the packages whose hashes they have, and no others."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.step_machine import Machine, succeeds
from tests.unit.assets.training.shell import bash
from tools.workload_locks import Locked, Target, render

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

    def lock(
        self, *, python: str = HERE, machine: str = "x86_64", requirements: str = REQUIREMENTS, **sums: str
    ) -> None:
        packages = [
            Locked(name=name, version="1.0", sha256=value)
            for name, value in (self.sums | sums).items()
            if value
        ]
        lock = render(requirements, {Target(python, machine): packages})
        (self.folder / "requirements.lock").write_text(lock)

    def make(self, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.machine.run("50", **{"WORKLOADS": "tiny", "RECIPE": "gpu", **environment})

    def assert_refused(self, words: str, **environment: str) -> None:
        """Assert that the environment is not made, with these words."""
        done = self.make(**environment)
        assert (done.returncode != 0, words in done.stderr, "Traceback" in done.stderr) == (True, True, False)
        assert not (self.machine.opt / "venvs" / "tiny" / "requirements.sha256").exists()


@pytest.fixture
def tiny(machine: Machine) -> Tiny:
    return Tiny(machine)


def test_the_lock_chooses_the_python(tiny: Tiny, tmp_path: Path) -> None:
    """The stand-in says what its name says, as Ubuntu 22.04's python3 beside an installed python3.12."""
    tiny.lock(python="3.12")
    for version in ("3.10", "3.12"):
        python = tmp_path / f"python{version}"
        python.write_text(f"#!/bin/sh\necho {version}\n")
        python.chmod(0o755)
    script = f"source {tiny.machine.bundle}/training/environment.sh; find_python {tiny.folder}"

    def find(*pythons: str, **environment: str) -> subprocess.CompletedProcess[str]:
        names = " ".join(f"{tmp_path}/python{each}" for each in pythons)
        return bash(script, TRAINING_PYTHON=names, **environment)

    assert find("3.10", "3.12").stdout == f"{tmp_path}/python3.12\n"
    missing = find("3.10")
    assert (missing.returncode, missing.stderr.startswith("no Python 3.12 on ")) == (1, True)
    assert "for the environment of tiny" in missing.stderr
    assert find("3.10", TRAINING_REHEARSAL="1").stdout == f"{tmp_path}/python3.10\n"
    (tiny.folder / "requirements.lock").unlink()
    assert find("3.10", "3.12").stdout == f"{tmp_path}/python3.10\n"


@pytest.mark.slow
def test_packages_of_other_content_are_not_installed(tiny: Tiny) -> None:
    for name in tiny.sums:
        tiny.lock(**{name: OTHER})
        tiny.assert_refused("DO NOT MATCH THE HASHES")
    tiny.lock(tinybase="")
    tiny.assert_refused("In --require-hashes mode, all requirements must have their versions pinned")
    tiny.lock(requirements="tinything==0.9\n")
    tiny.assert_refused("requirements.lock was not made from the requirements.txt beside it")
    tiny.lock(torch=OTHER, tinything=OTHER)
    tiny.assert_refused("DO NOT MATCH THE HASHES", TRAINING_REHEARSAL="1")
    tiny.lock(torch=OTHER)
    succeeds(tiny.make(TRAINING_REHEARSAL="1"))


@pytest.mark.slow
def test_what_the_lock_has_is_installed(tiny: Tiny) -> None:
    done = tiny.make()
    succeeds(done)
    venv = tiny.machine.opt / "venvs" / "tiny"
    assert {file.stem for file in venv.rglob("t*.py")} >= set(tiny.sums)
    assert "unchecked" not in done.stderr
    (tiny.folder / "requirements.lock").unlink()
    done = tiny.make()
    assert "has no requirements.lock, so its packages are installed unchecked; make lock" in done.stderr


@pytest.mark.slow
def test_a_rehearsal_has_its_own_torch(tiny: Tiny) -> None:
    tiny.machine.wheel("torch", "0.9", {"torch.py": "VALUE = 0\n"})
    given = tiny.folder / "requirements.txt"
    given.write_text(f"# Rehearsals: torch==0.9\n{given.read_text()}")
    for environment, value in (({"TRAINING_REHEARSAL": "1"}, 0), ({}, 1)):
        succeeds(tiny.make(**environment))
        (found,) = (tiny.machine.opt / "venvs" / "tiny").rglob("torch.py")
        assert found.read_text() == f"VALUE = {value}\n"


@pytest.mark.slow
def test_another_pythons_lock_is_refused_on_nodes(tiny: Tiny) -> None:
    tiny.lock(python="3.1", torch=OTHER, tinything=OTHER)
    tiny.assert_refused("no Python 3.1 on ")
    done = tiny.make(TRAINING_REHEARSAL="1")
    succeeds(done)
    assert "no hash is checked" in done.stderr
    # An environment that exists keeps its Python.
    tiny.lock(python="3.1")
    done = tiny.make()
    allowed = f"requirements.lock is not for Python {HERE} on x86_64. Allowed: 3.1 on x86_64."
    assert (done.returncode != 0, allowed in done.stderr) == (True, True)


@pytest.mark.slow
def test_arm_nodes_take_a_lock_for_them(tiny: Tiny) -> None:
    """bash has the processor architecture in HOSTTYPE, and keeps one that is set."""
    allowed = f"requirements.lock is not for Python {HERE} on aarch64. Allowed: {HERE} on x86_64."
    tiny.assert_refused(allowed, HOSTTYPE="aarch64")
    lock = tiny.folder / "requirements.lock"
    lock.write_text(lock.read_text().replace("# Machines: x86_64\n", ""))  # of an older release
    tiny.assert_refused(allowed, HOSTTYPE="aarch64")
    tiny.lock(machine="aarch64")
    succeeds(tiny.make(HOSTTYPE="aarch64"))
