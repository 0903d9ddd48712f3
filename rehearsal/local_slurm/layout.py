"""The files of one local Slurm, and the numbers that they depend on."""

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rehearsal.below import Below
from rehearsal.local_slurm.errors import SlurmError
from rehearsal.local_slurm.ports import LOOPBACK

UNWRITABLE = frozenset(" \t\n#")
"""Characters that a path in slurm.conf cannot contain; tools/setup.sh refuses such a folder."""
# sockaddr_un.sun_path is 108 bytes on Linux, the last of them a zero.
LONGEST_SOCKET_PATH = 107
# slurmstepd's socket is <spool>/<node>_<job>.<step>; the step of a batch script is 4294967291.
LONGEST_STEP = "_99999.4294967291"
_PATHS = ("root", "prolog", "alias")


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Paths (all under `root`), ports and the user of one local Slurm."""

    root: Path
    """Absolute path of the folder."""
    user: str
    """Name of the user who runs the daemons and the jobs."""
    host: str
    """This machine's short name, which slurmctld compares with its host name."""
    controller_port: int
    node_ports: Mapping[str, int]
    """Port of each node, by name. A node keeps its port when the cluster is updated."""
    max_node_processes: int = 8
    """Largest number of slurmd at a time; the cluster config may name many more nodes."""
    suspend_time_s: int = 20
    """Seconds after which an idle dynamic node powers down."""
    resume_timeout_s: int = 60
    suspend_timeout_s: int = 15
    prolog: Path | None = None
    """Absolute path of the folder of scripts that run before each job, ParallelCluster's prolog.d; those of
    epilog.d beside it run after each job."""
    accounting_port: int | None = None
    """Port of slurmdbd; None without accounting."""
    controller: str = LOOPBACK
    """Address of slurmctld. Where it is another one, each node has a network namespace, and its name resolves
    to its address."""
    alias: Path | None = None
    """Short name of `root`, for folders of Unix sockets; `root` itself if it has no short name."""

    @classmethod
    def read(cls, root: Path) -> "Layout":
        """Read the layout of the Slurm that runs in `root`."""
        values = json.loads(_file(root).read_text(encoding="utf-8"))
        paths = {name: Path(values[name]) for name in _PATHS if values[name]}
        return cls(**values | paths)

    def write(self) -> None:
        """Store the layout in `root` for processes that change this Slurm while it runs."""
        text = json.dumps(dataclasses.asdict(self), default=str, indent=1)
        _file(self.root).write_text(text, encoding="utf-8")

    conf = Below("slurm.conf")
    """Path of slurm.conf."""
    cgroup_conf = Below("cgroup.conf")
    """Path of cgroup.conf, which Slurm expects beside slurm.conf."""

    @property
    def munge_socket(self) -> Path:
        """Socket of munged."""
        return (self.alias or self.root) / "munge" / "socket"

    state = Below("state")
    """Folder of slurmctld's state."""

    @property
    def spool(self) -> Path:
        """Folder of each node's jobs, with scripts and sockets."""
        return (self.alias or self.root) / "spool"

    log = Below("log")
    """Folder of the daemons' logs."""
    run = Below("run")
    """Folder of process ids, one file per daemon."""
    jobs = Below("jobs")
    """Default working folder of jobs, and so of their output files."""
    resume_program = Below("resume")
    """Program with which slurmctld starts nodes."""
    suspend_program = Below("suspend")
    """Program with which slurmctld stops nodes."""
    await_program = Below("await")
    """Program that slurmctld runs before a job, to wait for the job's nodes."""
    node_program = Below("node")
    """Program with which resume_program starts one node."""

    @property
    def stopping(self) -> Path:
        """File that, while it exists, keeps nodes from starting."""
        return self.run / "stopping"

    def check_socket_paths(self, node_names: Iterable[str]) -> None:
        """Raise SlurmError if a Unix socket's path would be too long for the kernel."""
        steps = (self.spool / name / f"{name}{LONGEST_STEP}" for name in node_names)
        longest = max([self.munge_socket, *steps], key=lambda path: len(bytes(path)))
        excess = len(bytes(longest)) - LONGEST_SOCKET_PATH
        if excess > 0:
            raise SlurmError(
                f"A Unix socket's path would be {excess} bytes too long for Linux, which allows "
                f"{LONGEST_SOCKET_PATH}:\n  {longest}\n"
                "Give the queue and the compute resource of that node shorter names in the cluster config."
            )


def _file(root: Path) -> Path:
    return root / "layout.json"
