"""Where one local Slurm keeps its files, and the numbers that the files depend on."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rehearsal.local_slurm.errors import SlurmError

UNWRITABLE = frozenset(" \t\n#")
"""What a path in slurm.conf cannot hold; tools/setup.sh refuses a folder with them."""
# sockaddr_un.sun_path is 108 bytes on Linux, the last of them a zero.
LONGEST_SOCKET_PATH = 107
# slurmstepd's socket is <spool>/<node>_<job>.<step>; a batch script's step is 4294967291.
LONGEST_STEP = "_99999.4294967291"


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Paths (all under `root`), ports and the user of one local Slurm."""

    root: Path
    """Absolute."""
    user: str
    """Runs the daemons and the jobs."""
    host: str
    """This machine's short name; slurmctld compares it with its own."""
    controller_port: int
    first_node_port: int
    """Node i of the cluster listens on first_node_port + i."""
    max_node_processes: int = 8
    """Most slurmd at a time; the cluster config may name many more nodes."""
    suspend_time_s: int = 20
    """A dynamic node that is idle for this long powers down."""
    resume_timeout_s: int = 60
    suspend_timeout_s: int = 15
    prolog: Path | None = None
    """The folder whose scripts nodes run before each job; absolute. ParallelCluster's prolog.d."""
    credential_s: int = 70
    """How long a job's credential holds, as in ParallelCluster's slurm.conf. A job that is queued again
    starts only when it has expired."""
    alias: Path | None = None
    """A short name of `root`, for what holds Unix sockets; `root` itself if there is none."""

    def __post_init__(self) -> None:
        if set(str(self.root)) & UNWRITABLE:
            raise SlurmError(
                f"root {str(self.root)!r} has a blank or a # in it, and slurm.conf cannot hold that. "
                "Use a folder without them."
            )
        if not self.root.is_absolute():
            raise SlurmError(
                f"root {str(self.root)!r} is relative, and Slurm's daemons leave this folder. "
                "Give an absolute path, such as Path(...).resolve()."
            )

    @property
    def conf(self) -> Path:
        """slurm.conf."""
        return self.root / "slurm.conf"

    @property
    def cgroup_conf(self) -> Path:
        """cgroup.conf; Slurm looks for it beside slurm.conf."""
        return self.root / "cgroup.conf"

    @property
    def munge_socket(self) -> Path:
        """Where munged listens."""
        return (self.alias or self.root) / "munge" / "socket"

    @property
    def state(self) -> Path:
        """slurmctld's memory."""
        return self.root / "state"

    @property
    def spool(self) -> Path:
        """One folder a node, with the jobs' scripts and sockets."""
        return (self.alias or self.root) / "spool"

    @property
    def log(self) -> Path:
        """The log of every daemon."""
        return self.root / "log"

    @property
    def run(self) -> Path:
        """Process ids, one file a daemon."""
        return self.root / "run"

    @property
    def jobs(self) -> Path:
        """The working folder of a job that names no other, and so its output file."""
        return self.root / "jobs"

    @property
    def resume_program(self) -> Path:
        """What slurmctld runs to start nodes."""
        return self.root / "resume"

    @property
    def suspend_program(self) -> Path:
        """What slurmctld runs to stop nodes."""
        return self.root / "suspend"

    @property
    def await_program(self) -> Path:
        """What slurmctld runs before a job: it waits for the job's nodes."""
        return self.root / "await"

    @property
    def stopping(self) -> Path:
        """While this file is there, no node starts."""
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
