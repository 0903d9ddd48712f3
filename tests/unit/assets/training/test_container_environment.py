"""The environment over an image's packages: what it installs, and whose torch it is."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from tests.unit.assets.training.shell import bash
from training_cluster.paths import TRAINING

DIGEST = "sha256:" + "0123456789ab" + "c" * 52
LOCK = """\
# Pythons: 3.11
pytest=={pytest} \\
    --hash=sha256:11
typer==0.0.1 \\
    --hash=sha256:22 \\
    --hash=sha256:33
no-such-package==1.0 \\
    --hash=sha256:44
"""
LIBRARIES = ["nvidia-cublas==13.1", "cuda-bindings==13.5.0"]


def call(script: str, *arguments: object, **env: str) -> subprocess.CompletedProcess[str]:
    """Call functions of environment.sh in a job with a container."""
    env = {"CONTAINER_DIGEST": DIGEST, "TRAINING_VENVS": "/fsx/venvs"} | env
    return bash(f'source "{TRAINING}/environment.sh"; {script}', *arguments, **env)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """An environment whose interpreter has the packages of these tests: a link to it would not find them."""
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return tmp_path / "venv"


def test_packages_of_the_image_are_kept(tmp_path: Path, image: Path) -> None:
    lock, torch = tmp_path / "lock", tmp_path / "more" / "torch-2.9.0a0.dist-info"
    lock.write_text(LOCK.format(pytest=metadata.version("pytest")))
    done = call('lacking "$1" "$2"', lock, image)
    assert done.stdout == f"# Pythons: 3.11\n{LOCK[LOCK.index('no-such') :]}"
    other = f"in other versions: typer {metadata.version('typer')} for 0.0.1"
    assert done.stderr == f"container: 2 packages of {lock} are the image's, {other}\n"
    lock.write_text("\n".join([*LIBRARIES, "no-such-package==1.0"]))
    assert call('lacking "$1" "$2"', lock, image).stdout.splitlines()[:2] == LIBRARIES
    torch.mkdir(parents=True)
    (torch / "METADATA").write_text("Name: torch\nVersion: 2.9.0a0\n")
    done = call('lacking "$1" "$2"', lock, image, PYTHONPATH=str(torch.parent))
    assert done.stdout == "no-such-package==1.0", "torch of the image has its GPU libraries"


def test_an_image_may_have_build_tools(tmp_path: Path, image: Path) -> None:
    """The lock asks for them first, and what the image has is not in the lock any more."""
    (tmp_path / "requirements.txt").write_text("no-such-package==1.0\n")
    install = """
        environment_lock_of() { echo "$1/lock"; }
        check_container_pip() { :; }
        environment_pip() { echo "pip ${*:2}"; }
        install_packages "$1" "$2" ""
        """
    last = "--require-hashes --no-build-isolation --requirement"
    tools = f"pip --no-deps --require-hashes --only-binary :all: --requirement {image}/locked.txt\n"
    for digest, packages, calls in (
        (DIGEST, "no-such-package==1.0 --hash=sha256:44", f"pip --no-deps {last} {image}/lacking.txt\n"),
        ("", "setuptools==80.0 --hash=sha256:44", f"{tools}pip {last} {tmp_path}/lock\n"),
    ):
        (tmp_path / "lock").write_text(f"--no-binary other\n{packages}\n")
        done = call(install, tmp_path, image, CONTAINER_DIGEST=digest)
        assert done.stdout == calls, done


def test_install_sh_yields_to_the_image(tmp_path: Path) -> None:
    script = 'if image_provides "$1" "$2"; then echo there; fi'
    for module, digest, there in (
        ("json", DIGEST, "there\n"),
        ("no_such_module", DIGEST, ""),
        ("json", "", ""),
    ):
        (tmp_path / "install.sh").write_text(f"#!/bin/sh\n# Provides: {module}\n")
        assert call(script, tmp_path, sys.executable, CONTAINER_DIGEST=digest).stdout == there


def test_an_environment_belongs_to_image_and_user() -> None:
    for workload, variant in (("gpt2", ""), ("bert-trainium", "-cpu")):
        name = f"/fsx/venvs/{workload}-0123456789ab-{os.geteuid()}{variant}\n"
        assert call('container_environment "$1"', TRAINING / workload).stdout == name
