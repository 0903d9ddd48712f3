"""Enroot's hook that gives containers the node's EFA software; folders are the node and the container."""

import subprocess
from pathlib import Path

from training_cluster.paths import ASSETS

HOOK = ASSETS / "bootstrap" / "enroot" / "97-efa.sh"
LIB = "usr/lib/x86_64-linux-gnu"
CARD, FABRIC, PLUGIN = (
    *("dev/infiniband/uverbs0", "opt/amazon/efa/lib/libfabric.so.1"),
    "opt/amazon/ofi-nccl/lib/x86_64-linux-gnu/libnccl-net.so",
)
INSTALLED, DRIVER = "opt/amazon/efa_installed_packages", "etc/libibverbs.d/efa.driver"
VERBS, EFA, NL, RDMA = (
    f"{LIB}/{name}"
    for name in ("libibverbs.so.1", "libefa.so.1", "libnl-3.so.200", "libibverbs/libefa-rdmav34.so")
)
# As on Ubuntu.
NCCL = "etc/nccl.conf"
NODE = (CARD, FABRIC, INSTALLED, PLUGIN, VERBS, EFA, NL, RDMA, DRIVER, NCCL)
FOLDERS = ("opt/amazon/efa", INSTALLED, "opt/amazon/ofi-nccl")
PATHS = f"/opt/amazon/efa/lib:/opt/amazon/ofi-nccl/lib:/{Path(PLUGIN).parent}:/{LIB}"
CUDA = "LD_LIBRARY_PATH=/usr/local/cuda/lib64"
OWN = "opt/amazon/aws-ofi-nccl/lib/libnccl-net.so"
# Files of the node and of the image, variables of the image; mounts, and what the image gets as variables.
CASES = (
    (
        NODE,
        (),
        (),
        (NCCL, *FOLDERS, VERBS, EFA, NL, RDMA, DRIVER),
        ("CONTAINER_EFA=host", f"LD_LIBRARY_PATH={PATHS}"),
    ),
    # An image keeps its own libraries.
    (
        *(NODE, ("usr/lib64/libibverbs.so.1.14", "lib/x86_64-linux-gnu/libnl-3.so.200"), (CUDA,)),
        (NCCL, *FOLDERS, EFA, RDMA, DRIVER),
        ("CONTAINER_EFA=host", f"{CUDA}:{PATHS}"),
    ),
    # An image keeps its own EFA software, and its settings of NCCL.
    (
        NODE,
        (FABRIC, OWN, NCCL),
        (),
        (),
        ("LD_LIBRARY_PATH=/opt/amazon/efa/lib:/opt/amazon/aws-ofi-nccl/lib",),
    ),
    # A node without EFA gives NCCL's settings alone.
    (NODE[1:], (), (), (NCCL,), ()),
    ((CARD, *NODE[2:]), (), (), (NCCL,), ()),
)


def test_an_image_gets_what_it_lacks(tmp_path: Path) -> None:
    for number, (node, image, given, mounts, added) in enumerate(CASES):
        folder = tmp_path / str(number)
        for root, names in (("node", node), ("image", image)):
            (folder / root).mkdir(parents=True)
            for file in (folder / root / name for name in names):
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text("content")
        environ = folder / "environ"
        env = {
            "PATH": "/usr/bin:/bin",
            "TRAINING_ROOT": str(folder / "node"),
            "ENROOT_ROOTFS": str(folder / "image"),
            "ENROOT_MOUNTS": str(folder / "mounts"),
            "ENROOT_ENVIRON": str(environ),
        }
        for _ in range(2):
            (folder / "mounts").write_text("")
            environ.write_text("".join(f"{line}\n" for line in ("PATH=/usr/bin", *given)))
            done = subprocess.run(["bash", HOOK], env=env, capture_output=True, text=True)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
            found = [line.split()[1] for line in (folder / "mounts").read_text().splitlines()]
            assert found == [f"/{name}" for name in mounts], number
            assert environ.read_text().splitlines()[1 + len(given) :] == list(added), number
            # Enroot makes what it mounts on, and the container of a restart still has it.
            for name in mounts:
                target = folder / "image" / name
                target.parent.mkdir(parents=True, exist_ok=True)
                if (folder / "node" / name).is_dir():
                    target.mkdir(exist_ok=True)
                else:
                    target.touch()
