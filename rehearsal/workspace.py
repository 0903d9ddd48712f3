"""Where a rehearsal writes: `.rehearsal/` of the project, and nowhere else."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rehearsal.local_slurm.layout import UNWRITABLE
from rehearsal.problems import RehearsalError

PROJECT = Path(__file__).resolve().parents[1]
MARKER = "TRAINING_CLUSTER_REHEARSAL"
"""Environment variable that every process of a rehearsal carries, so that none is forgotten."""


# Python environments of the workloads: kept from one rehearsal to the next, since they take minutes.
VENVS = PROJECT / ".rehearsal" / "venvs"


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """The folders of one rehearsal, made anew each time.

    Args:
        root: absolute.
    """

    root: Path = PROJECT / ".rehearsal"

    @property
    def aws(self) -> Path:
        """What the local AWS and its clients write."""
        return self.root / "aws"

    @property
    def slurm(self) -> Path:
        """The local Slurm; a short path, since Unix sockets lie in it."""
        return self.root / "slurm"

    @property
    def shared(self) -> Path:
        """Stands for the Lustre file system (/fsx): scripts, data, checkpoints, metrics."""
        return self.root / "shared"

    @property
    def efs(self) -> Path:
        """Stands for the EFS file system (/efs)."""
        return self.root / "efs"

    @property
    def node(self) -> Path:
        """Stands for a node's own disk: /etc/training-cluster and /opt/training-cluster."""
        return self.root / "node"

    @property
    def logs(self) -> Path:
        """One file a command."""
        return self.root / "logs"

    @property
    def report(self) -> Path:
        """Loss curve and summary."""
        return self.root / "report"

    @property
    def env_file(self) -> Path:
        """What a shell sources to talk to a kept rehearsal."""
        return self.root / "env.sh"

    @property
    def marker(self) -> tuple[str, str]:
        """The environment variable of all its processes."""
        return MARKER, str(self.root)

    def make_anew(self) -> None:
        """Remove the last rehearsal's folders and make empty ones."""
        self.env_file.unlink(missing_ok=True)
        for folder in (self.aws, self.slurm, self.shared, self.efs, self.node, self.logs, self.report):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        VENVS.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the workspace: one rehearsal at a time.

        Raises:
            RehearsalError: another one holds it, or no Slurm can run in it.
        """
        if set(str(self.root)) & UNWRITABLE:
            raise RehearsalError(
                f"{self.root}: the path has a blank or a # in it, and slurm.conf cannot hold that.\n"
                "  mend: move the project to a folder without them, and there\n  type: make setup"
            )
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RehearsalError(
                    f"Another rehearsal is running in {self.root}. Wait for it, or end it: make stop"
                ) from None
            yield
