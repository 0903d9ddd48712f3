"""The program that starts a node's slurmd, in its own namespaces where this machine allows it.

A node then has its own /tmp, /var/tmp and /dev/shm, and its own System V and POSIX queues, like a separate
host; shared folders stay shared. Process ids and /proc remain this machine's, since the nodes' Unix sockets
have names under /proc/<id>/cwd (daemons.py), which do not exist in another PID namespace. Host names also
remain, since gloo resolves them.
"""

import os
import shlex
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

_ON_DISK = ("/tmp", "/var/tmp")  # noqa: S108 - names in a node
_UNSHARE = ("unshare", "--mount", "--ipc")
BRIDGE = "training"
"""Bridge of the nodes with networks of their own, which whoever starts the Slurm has made."""
_NETWORK = f"""\
  address="$(getent ahostsv4 "$1" | sed -n '1s/ .*//p')" port="node${{address##*.}}"
  # A process that the node left keeps its namespace.
  ip link delete "$port" 2>/dev/null || true
  ip netns delete "$1" 2>/dev/null || true
  ip netns add "$1"
  ip link add "$port" type veth peer name eth0 netns "$1"
  ip link set "$port" master {BRIDGE} up
  ip -n "$1" address add "$address/24" dev eth0
  ip -n "$1" link set lo up
  ip -n "$1" link set eth0 up
"""
_MEMORY = "/dev/shm"  # noqa: S108 - as above

_INSIDE = """\
# hide FOLDER KEPT...: mount another folder over it; the KEPT entries, which all nodes share, remain.
hide() {
  own="$disk$1" folder="$1"
  shift
  mkdir -p "$own"
  chmod 1777 "$own"
  for name; do
    mkdir -p "$own/$name"
    mount --rbind "$folder/$name" "$own/$name"
  done
  mount --rbind "$own" "$folder"
}
"""


def can_separate(environment: Mapping[str, str]) -> bool:
    """Try whether this user may make the namespaces and mount in them; a container may refuse it to root.

    Another user would need a user namespace, in which the kernel refuses /proc/<id>/cwd of a process outside
    (cap_ptrace_access_check).
    """
    if os.geteuid() != 0:
        return False
    mount = ["mount", "-t", "tmpfs", "tmpfs", _MEMORY]
    try:
        tried = subprocess.run(
            [*_UNSHARE, *mount], env=dict(environment), capture_output=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 0


def node_program(
    *,
    root: Path,
    shared: Collection[Path],
    separate: bool,
    private: Collection[Path] = (),
    service: Sequence[str] = (),
    has_network: bool = False,
    begin: Path | None = None,
) -> str:
    """Return the text of the program that power.py calls with a node's name.

    Args:
        root: folder of the local Slurm; each node's own files are under `disks` in it.
        shared: folders that all nodes share, even inside a folder of which each node has its own.
        separate: True for namespaces.
        private: existing folders of this machine that each node replaces by its own.
        service: program that runs on each node, with its arguments; power.py ends it with the node.
        has_network: True for a network namespace, with the address of the node's name, at BRIDGE.
        begin: script that a separate node runs before slurmd, with its name.
    """
    # -b reports that the node has booted, which ends its state "powering up".
    start = 'exec slurmd -N "$1" -b\n'
    if service:
        # Of a job's prolog, which no cfnconfig tells its queue either.
        run = f'SLURMD_NODENAME="$1" SLURM_JOB_PARTITION="${{1%-[sd][ty]-*}}" {shlex.join(service)} "$1"'
        log = shlex.quote(str(root / "log" / "service.log"))
        start = f'{run} >>{log} 2>&1 &\necho $! >{shlex.quote(str(root))}/run/"$1.service"\n{start}'
    if not separate:
        return f"#!/bin/sh\n# power.py calls this with a node's name.\n{start}"
    hidden = "".join(
        shlex.join(["hide", folder, *_entries(folder, {root, *shared})]) + "\n" for folder in _ON_DISK
    ) + "".join(shlex.join(["hide", str(folder)]) + "\n" for folder in private)
    memory = _entries(_MEMORY, {root, *shared})
    mount = shlex.join(["hide", _MEMORY, *memory] if memory else ["mount", "-t", "tmpfs", "tmpfs", _MEMORY])
    before = f'bash {shlex.quote(str(begin))} "$1"\n' if begin else ""
    # job_container/tmpfs mounts the mount namespace of each job. Linux 6.18 refuses one with a lower id than
    # slurmd's, and gives each CPU ids of its own, which grow: so each node stays on one CPU, by its number.
    cpus = sorted(os.sched_getaffinity(0))
    cpu = f"$(echo {','.join(map(str, cpus))} | cut -d , -f $((${{1##*-}} % {len(cpus)} + 1)))"
    return (
        "#!/bin/sh\n# power.py calls this with a node's name.\nset -eu\n"
        f"disk={shlex.quote(str(root / 'disks'))}/$1\n"
        'if [ "${2:-}" != inside ]; then\n'
        '  rm -rf --one-file-system "$disk"\n'
        f"{_NETWORK if has_network else ''}"
        f"  exec {'nsenter --net=/run/netns/$1 ' if has_network else ''}"
        f'taskset --cpu-list "{cpu}" {shlex.join(_UNSHARE)} "$0" "$1" inside\n'
        f"fi\n{_INSIDE}{hidden}{mount}\n"
        f"{before}{start}"
    )


def _entries(folder: str, paths: Collection[Path]) -> list[str]:
    """Return the names in `folder` through which these paths lead."""
    inside = [path.relative_to(folder) for path in paths if path.is_relative_to(folder)]
    return sorted({path.parts[0] for path in inside if path.parts})
