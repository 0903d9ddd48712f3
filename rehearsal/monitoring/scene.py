"""The folders and ports of a rehearsal's metrics."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from training_cluster.paths import ROOT

PROGRAMS = ROOT / ".cache" / "prometheus" / "usr" / "bin"
"""Prometheus, promtool and node_exporter, as tools/setup.sh unpacks them."""
HOST = "127.0.0.1"


class Scene(BaseModel):
    """One rehearsal's metrics. All paths are absolute."""

    model_config = ConfigDict(frozen=True)

    folder: Path
    """Folder of text files, configs, data and logs."""
    bootstrap: Path
    """Bundle's bootstrap/, with metrics/ and monitoring/."""
    slurm: Path
    """Folder of the local Slurm."""
    job_files: Path
    """Folder in which prologs record the job of their node; each separate node has its own."""
    shared: Path
    """Replacement of /fsx."""
    prices: Path
    """The bundle's prices."""
    cluster: str
    first_port: int
    """Port of Prometheus; the head node's exporter has the next one, then the nodes' exporters follow."""
    interval_s: float = 5.0
    budget_usd: int = 1000

    @property
    def url(self) -> str:
        """Address of Prometheus."""
        return f"http://{HOST}:{self.first_port}"

    @property
    def targets(self) -> Path:
        """File with Prometheus's targets, the nodes' exporters."""
        return self.folder / "nodes.json"

    def textfiles(self, node: str) -> Path:
        """Return the folder of a node's text files; its prolog sees it by another path."""
        own = self.slurm / "disks" / node / self.job_files.relative_to("/")
        return own if own.is_dir() else self.job_files
