"""The environment over an image's packages: what it installs, and whose torch it is."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

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


def bash(script: str, **env: str) -> subprocess.CompletedProcess[str]:
    source = f'set -euo pipefail; source "{TRAINING}/environment.sh"; {script}'
    path = {"PATH": os.environ["PATH"], "CONTAINER_DIGEST": DIGEST, "TRAINING_VENVS": "/fsx/venvs"}
    return subprocess.run(["bash", "-c", source], env=path | env, capture_output=True, text=True, check=False)


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "python").symlink_to(sys.executable)
    return tmp_path / "venv"


@pytest.fixture
def image(venv: Path) -> Path:
    """An environment whose interpreter has the packages of these tests: a link to it would not find them."""
    python = venv / "bin" / "python"
    python.unlink()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return venv


def test_what_the_image_has_is_not_installed_again_and_other_versions_are_named(
    tmp_path: Path, image: Path
) -> None:
    lock = tmp_path / "lock"
    lock.write_text(LOCK.format(pytest=metadata.version("pytest")))
    done = bash(f'lacking "{lock}" "{image}"')
    assert done.stdout.splitlines() == [
        "# Pythons: 3.11",
        "no-such-package==1.0 \\",
        "    --hash=sha256:44",
    ]
    other = f"in other versions: typer {metadata.version('typer')} for 0.0.1"
    assert done.stderr == f"container: 2 packages of {lock} are the image's, {other}\n"


@pytest.mark.parametrize("has_torch", [True, False])
def test_an_image_with_torch_gets_no_gpu_libraries_of_pypis(
    tmp_path: Path, image: Path, has_torch: bool
) -> None:
    if has_torch:
        (tmp_path / "more" / "torch-2.9.0a0.dist-info").mkdir(parents=True)
        (tmp_path / "more" / "torch-2.9.0a0.dist-info" / "METADATA").write_text(
            "Name: torch\nVersion: 2.9.0a0\n"
        )
    lock = tmp_path / "lock"
    libraries = ["nvidia-cublas==13.1", "cuda-bindings==13.5.0"]
    lock.write_text("\n".join([*libraries, "no-such-package==1.0"]) + "\n")
    done = bash(f'lacking "{lock}" "{image}"', PYTHONPATH=str(tmp_path / "more"))
    assert done.stdout.splitlines() == [*([] if has_torch else libraries), "no-such-package==1.0"]


def test_an_image_may_have_what_builds_source_archives(tmp_path: Path, image: Path) -> None:
    """The lock asks for it first, and what the image has is not in the lock any more."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "requirements.txt").write_text("no-such-package==1.0\n")
    (folder / "lock").write_text("--no-binary other\nno-such-package==1.0 --hash=sha256:44\n")
    script = f"""
        environment_lock_of() {{ echo "{folder}/lock"; }}
        check_container_pip() {{ :; }}
        environment_pip() {{ echo "pip ${{*:2}}"; }}
        install_packages "{folder}" "{image}" ""
    """
    done = bash(script)
    assert (done.returncode, done.stdout) == (
        0,
        f"pip --no-deps --require-hashes --no-build-isolation --requirement {image}/lacking.txt\n",
    ), done


@pytest.mark.parametrize(("module", "is_there"), [("json", True), ("no_such_module", False)])
def test_install_sh_is_skipped_where_the_image_has_its_module(
    tmp_path: Path, module: str, is_there: bool
) -> None:
    (tmp_path / "install.sh").write_text(f"#!/bin/sh\n# Provides: {module}\n")
    script = f'if image_provides "{tmp_path}" "{sys.executable}"; then echo there; fi'
    assert bash(script).stdout == ("there\n" if is_there else "")
    assert bash(script, CONTAINER_DIGEST="").stdout == ""


def test_an_environment_belongs_to_its_image_and_user() -> None:
    said = bash(f'container_environment "{TRAINING}/gpt2"').stdout
    assert said == f"/fsx/venvs/gpt2-0123456789ab-{os.geteuid()}\n"
    said = bash(f'container_environment "{TRAINING}/bert-trainium"').stdout
    assert said == f"/fsx/venvs/bert-trainium-0123456789ab-{os.geteuid()}-cpu\n"


def test_each_install_sh_names_its_module() -> None:
    for script in TRAINING.glob("*/install.sh"):
        assert "\n# Provides: " in script.read_text(), script
