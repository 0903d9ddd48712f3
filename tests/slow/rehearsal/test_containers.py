"""The image of a rehearsal, and a task in its container: what it sees, and what it cannot reach. No Slurm."""

import dataclasses
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from rehearsal.containers.image import make_image
from rehearsal.containers.options import ContainerOptions
from rehearsal.node_root.base import NoRootError
from rehearsal.workspace import IMAGES
from training_cluster.paths import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.root]

NOBODY = 65534


@pytest.fixture(scope="module")
def image() -> Path:
    try:
        return make_image(IMAGES, environment=None, say=print)
    except NoRootError as error:
        pytest.skip(str(error).splitlines()[0])


@pytest.fixture
def node(tmp_path_factory: pytest.TempPathFactory, image: Path) -> Path:
    """A node's disk, with a folder that is shared and one that is not; the image is unpacked there once."""
    node = tmp_path_factory.getbasetemp() / "node"
    for folder in (node / "shared", node / "tmp"):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o1777)
    (node / "secret").write_text("of the node")
    return node


def task(
    node: Path, options: ContainerOptions, *command: str, prefix: tuple[str, ...] = (), **env: str
) -> subprocess.CompletedProcess[str]:
    step = [sys.executable, "-B", "-P", "-m", "rehearsal.containers.step", "task"]
    slurm = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURMD_NODENAME": "train-1"}
    return subprocess.run(
        [*prefix, *step, json.dumps(dataclasses.asdict(options)), *command],
        env={"PATH": os.environ["PATH"], "TMPDIR": str(node / "tmp"), **slurm, **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_task_sees_the_image_and_mounts_alone(node: Path, image: Path) -> None:
    shared = str(node / "shared")
    options = ContainerOptions(
        image=str(image), name="a", mounts=((shared, shared, ""), (shared, "/again", "ro")), workdir=shared
    )
    script = (
        f"pwd; cat /etc/image-of-the-rehearsal; test -e {node}/secret || echo hidden; "
        f"test -e {ROOT}/README.md || echo gone; touch mine; touch /again/no || true; touch /no || true; "
        "echo $MAX_STEPS $IMAGE_OF $MINE; ls /dev/null"
    )
    done = task(node, options, "sh", "-c", script, MAX_STEPS="100", MINE="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [shared, "hidden", "gone", "7 the rehearsal 1", "/dev/null"]
    assert "/again/no': Read-only file system" in done.stderr
    assert "/no': Read-only file system" in done.stderr
    assert (node / "shared" / "mine").exists()
    kept = dataclasses.replace(options, env=("MAX_STEPS",))
    assert task(node, kept, "sh", "-c", "echo $MAX_STEPS", MAX_STEPS="100").stdout == "100\n"


def test_writable_container_keeps_its_files(node: Path, image: Path) -> None:
    options = ContainerOptions(image=str(image), name="b", writable=True)
    assert task(node, options, "touch", "/kept").returncode == 0
    assert task(node, options, "ls", "/kept").stdout == "/kept\n"
    other = dataclasses.replace(options, name="c")
    assert task(node, other, "ls", "/kept").returncode == 2


def test_another_user_is_alone_in_a_container(image: Path) -> None:
    """As in Enroot: of all owners only the user is shown, and no right of root is had."""
    user = pwd.getpwnam("daemon")
    with tempfile.TemporaryDirectory(dir="/tmp") as name:  # pytest's are root's alone
        node = Path(name)
        node.chmod(0o755)
        (node / "tmp").mkdir()
        (node / "tmp").chmod(0o1777)
        (node / "of-root").write_text("")
        shutil.copy(image, node / "image.sqsh")
        options = ContainerOptions(
            image=f"{node}/image.sqsh", name="d", writable=True, mounts=((str(node), str(node), ""),)
        )
        script = (
            f"id -un; stat --format %u /etc/passwd {node}/of-root; mount -t tmpfs tmpfs /mnt || echo refused"
        )
        as_user = ("setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups")
        done = task(node, options, "sh", "-c", script, prefix=as_user)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["daemon", str(user.pw_uid), str(NOBODY), "refused"]
