"""Throw-away machines: nothing of them stays or gets out. Nodes that start show that software installs."""

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.slow.node_root.disk import DISKS, remove_orphans
from tests.slow.node_root.machine import Machine, new_machine
from training_cluster.paths import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.root]

GONE_WITHIN_S = 60

# Writes, starts something that would stay, and tries what reaches past a namespace.
BUSY = """
mkdir -p /etc/mine /opt/mine
echo x >/etc/mine/file; echo x >/opt/mine/file; rm -r /etc/cron.d
mkdir /mnt/here; mount -t tmpfs tmpfs /mnt/here
hostname elsewhere
setsid sleep "$1" &
tried() { if bash -c "$1" >/dev/null 2>&1; then echo "this was possible: $1"; fi; }
tried 'now="$(</proc/sys/vm/swappiness)"; echo "$now" >/proc/sys/vm/swappiness'
tried 'mknod /tmp/disk b 8 0'
tried 'date -s "$(date)"'
tried 'ip link set lo mtu 65536'
"""


def _run(machine: Machine, script: str, *arguments: str) -> str:
    done = machine.run("bash", "-euc", script, "script", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _of_this_machine() -> dict[str, object]:
    files = {}
    for folder in ("/etc", "/opt", "/usr/local"):
        for path in Path(folder).rglob("*"):
            status = path.lstat()
            files[str(path)] = (status.st_mode, status.st_size, status.st_mtime_ns)
    return {
        "files": files,
        "mounts": Path("/proc/self/mountinfo").read_text(),
        "hostname": socket.gethostname(),
        "swappiness": Path("/proc/sys/vm/swappiness").read_text(),
        "interfaces": sorted(name for _, name in socket.if_nameindex()),
    }


def _processes_with(word: str) -> list[str]:
    """List the command lines of live processes that contain a word."""
    lines = []
    for process in psutil.process_iter():
        try:
            line = process.cmdline()
        except psutil.Error:
            continue
        if word in line and process.pid != os.getpid():
            lines.append(" ".join(line))
    return lines


def _wait(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + GONE_WITHIN_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_nothing_of_a_machine_leaks() -> None:
    word = f"1000.{secrets.randbelow(10**9)}"
    before = _of_this_machine()
    with new_machine() as machine:
        assert _run(machine, BUSY, word) == ""
        folder = machine.disk.folder
        assert (machine.disk.written / "etc" / "mine" / "file").read_text() == "x\n"
    assert not folder.exists()
    assert _processes_with(word) == []
    assert _of_this_machine() == before


def test_without_layers_a_disk_is_a_copy() -> None:
    with new_machine(layered=False) as image:
        _run(image, "echo baked >/opt/tool")
        with new_machine(made_from=image.disk, layered=False) as node:
            assert _run(node, "cat /opt/tool; rm /opt/tool; python3 -c 'print(1)'") == "baked\n1"
        assert _run(image, "cat /opt/tool") == "baked"


@pytest.mark.parametrize("killed", ["owner", "machine"])
def test_nothing_stays_of_a_killed_machine(killed: str) -> None:
    word = f"1000.{secrets.randbelow(10**9)}"
    owner = subprocess.Popen(
        [
            *(sys.executable, "-c"),
            "import sys\n"
            "from tests.slow.node_root.machine import new_machine\n"
            "with new_machine() as machine:\n"
            "    print(machine.disk.folder, flush=True)\n"
            "    machine.run('bash', '-c', 'setsid sleep $0 & sleep $0', sys.argv[1])\n",
            word,
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout
    try:
        folder = Path(owner.stdout.readline().strip())
        # The owner, unshare, the shell that enters, the one in the machine, and its two.
        _wait(lambda: len(_processes_with(word)) >= 5)
        (entered,) = psutil.Process(owner.pid).children()
        (owner if killed == "owner" else entered).kill()
        owner.wait(GONE_WITHIN_S)
        _wait(lambda: not _processes_with(word))
    finally:
        owner.kill()
    assert folder.parent == DISKS
    assert folder.exists() is (killed == "owner")
    assert str(folder) not in Path("/proc/self/mountinfo").read_text()
    remove_orphans()
    assert not folder.exists()
