"""The folders of a rehearsal, which writes only to `.rehearsal/` of the project."""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rehearsal.below import Below
from rehearsal.local_slurm.layout import UNWRITABLE
from rehearsal.problems import RehearsalError
from training_cluster.paths import ROOT

MARKER = "TRAINING_CLUSTER_REHEARSAL"
"""Environment variable of every process of a rehearsal, by which all of them are found."""


# Python environments of the workloads, which are kept between rehearsals, since they take minutes.
VENVS = ROOT / ".rehearsal" / "venvs"
# Images of containers, which are kept as well.
IMAGES = ROOT / ".rehearsal" / "images"


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """The folders of one rehearsal below `root`, which are created again each time."""

    root: Path = ROOT / ".rehearsal"

    aws = Below("aws")
    """Folder of the local AWS and its clients."""
    slurm = Below("slurm")
    """Folder of the local Slurm; its path is short, since it holds Unix sockets."""
    shared = Below("shared")
    """Replacement of the Lustre file system (/fsx): scripts, data, checkpoints, metrics."""
    efs = Below("efs")
    """Replacement of the EFS file system (/efs)."""
    node = Below("node")
    """Replacement of a node's own disk: /etc/training-cluster and /opt/training-cluster."""
    logs = Below("logs")
    """Logs, one file per command."""
    report = Below("report")
    """Folder of the report's page."""
    metrics = Below("metrics")
    """Folder of Prometheus and of the head node's text files."""
    env_file = Below("env.sh")
    """File that a shell sources to use a rehearsal that is left running."""

    @property
    def marker(self) -> tuple[str, str]:
        """Environment variable of all its processes, with its value."""
        return MARKER, str(self.root)

    def make_anew(self) -> None:
        """Remove the last rehearsal's folders and create empty ones."""
        self.env_file.unlink(missing_ok=True)
        for folder in (
            self.aws,
            self.slurm,
            self.shared,
            self.efs,
            self.node,
            self.logs,
            self.report,
            self.metrics,
        ):
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
                f"{self.root}: the path contains a space or a #, which slurm.conf cannot express.\n"
                "  fix: move the project to a folder without them, and there\n  type: make setup"
            )
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RehearsalError(
                    f"Another rehearsal is running in {self.root}. Wait for it, or end it: make stop"
                ) from None
            try:
                yield
            except (RehearsalError, OSError) as error:
                if self.root.exists():
                    raise
                raise RehearsalError(f"{error}\n  cause:  {self.root} was removed meanwhile") from None
