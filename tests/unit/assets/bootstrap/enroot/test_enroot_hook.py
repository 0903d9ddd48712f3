"""Enroot's hook that gives containers the node's EFA software; folders are the node and the container."""

import subprocess
from pathlib import Path

import pytest

from training_cluster.paths import ROOT

HOOK = ROOT / "assets" / "bootstrap" / "enroot" / "97-efa.sh"
LIBRARIES = "usr/lib/x86_64-linux-gnu"


class Start:
    """The start of one container: what the node and the image have, and what the hook adds."""

    def __init__(self, folder: Path) -> None:
        self.node, self.image = folder / "node", folder / "image"
        self._mounts, self._environ = folder / "mounts", folder / "environ"
        for each in (self.node, self.image):
            each.mkdir()
        self._mounts.touch()
        self.set("PATH=/usr/bin\n")

    def set(self, environ: str) -> None:
        self._environ.write_text(environ)

    def has(self, root: Path, *names: str) -> None:
        for name in names:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()

    def run(self) -> None:
        env = {
            "PATH": "/usr/bin:/bin",
            "TRAINING_ROOT": str(self.node),
            "ENROOT_ROOTFS": str(self.image),
            "ENROOT_MOUNTS": str(self._mounts),
            "ENROOT_ENVIRON": str(self._environ),
        }
        done = subprocess.run(["bash", HOOK], env=env, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def mounts(self) -> list[str]:
        return [line.split()[1] for line in self._mounts.read_text().splitlines()]

    def environ(self) -> list[str]:
        return self._environ.read_text().splitlines()[1:]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """An image with nothing, on a node with EFA cards and their software, as on Ubuntu."""
    start = Start(tmp_path)
    start.has(
        start.node,
        "dev/infiniband/uverbs0",
        "opt/amazon/efa/lib/libfabric.so.1",
        "opt/amazon/efa_installed_packages",
        "opt/amazon/ofi-nccl/lib/x86_64-linux-gnu/libnccl-net.so",
        f"{LIBRARIES}/libibverbs.so.1",
        f"{LIBRARIES}/libefa.so.1",
        f"{LIBRARIES}/libnl-3.so.200",
        f"{LIBRARIES}/libibverbs/libefa-rdmav34.so",
        "etc/libibverbs.d/efa.driver",
    )
    return start


def test_an_image_without_efa_software_gets_the_nodes(start: Start) -> None:
    start.run()
    assert start.mounts() == [
        "/opt/amazon/efa",
        "/opt/amazon/efa_installed_packages",
        "/opt/amazon/ofi-nccl",
        f"/{LIBRARIES}/libibverbs.so.1",
        f"/{LIBRARIES}/libefa.so.1",
        f"/{LIBRARIES}/libnl-3.so.200",
        f"/{LIBRARIES}/libibverbs/libefa-rdmav34.so",
        "/etc/libibverbs.d/efa.driver",
    ]
    folders = ["/opt/amazon/efa/lib", "/opt/amazon/ofi-nccl/lib", "/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu"]
    assert start.environ() == [
        "CONTAINER_EFA=host",
        f"LD_LIBRARY_PATH={':'.join(folders)}:/{LIBRARIES}",
    ]


def test_an_image_keeps_its_own_libraries(start: Start) -> None:
    start.has(start.image, "usr/lib64/libibverbs.so.1.14", "lib/x86_64-linux-gnu/libnl-3.so.200")
    start.set("PATH=/usr/bin\nLD_LIBRARY_PATH=/usr/local/cuda/lib64\n")
    start.run()
    assert f"/{LIBRARIES}/libibverbs.so.1" not in start.mounts()
    assert f"/{LIBRARIES}/libnl-3.so.200" not in start.mounts()
    assert f"/{LIBRARIES}/libefa.so.1" in start.mounts()
    assert start.environ()[-1].startswith("LD_LIBRARY_PATH=/usr/local/cuda/lib64:/opt/amazon/efa/lib:")


def test_efa_software_of_an_image_stays(start: Start) -> None:
    start.has(start.image, "opt/amazon/efa/lib/libfabric.so.1", "opt/amazon/aws-ofi-nccl/lib/libnccl-net.so")
    start.run()
    assert start.mounts() == []
    assert start.environ() == ["LD_LIBRARY_PATH=/opt/amazon/efa/lib:/opt/amazon/aws-ofi-nccl/lib"]


@pytest.mark.parametrize("missing", ["dev/infiniband/uverbs0", "opt/amazon/efa/lib/libfabric.so.1"])
def test_a_node_without_efa_changes_nothing(start: Start, missing: str) -> None:
    path = start.node / missing
    path.unlink()
    if "amazon" in missing:
        path.parent.rmdir()
        path.parent.parent.rmdir()
    start.run()
    assert (start.mounts(), start.environ()) == ([], [])
