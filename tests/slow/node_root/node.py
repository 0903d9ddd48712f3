"""A node of ParallelCluster as a throw-away machine: its files, its bucket, and its start."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rehearsal.containers.base import FOLDER
from tests.slow.node_root.disk import Disk
from tests.slow.node_root.machine import Finished, Machine, new_machine
from tests.slow.node_root.parallelcluster import actions, write_image, write_node
from training_cluster.cluster.bundle import build_uploads
from training_cluster.cluster.nodes import bootstrap_prefix
from training_cluster.flags.settings import Settings
from training_cluster.paths import ASSETS
from training_cluster.pcluster.check import config_before_deploy

BUCKETS = "/srv/s3"
_LOG_LINE = re.compile(r"bootstrap: step (?P<step>\S+): (?P<said>.+)$", re.MULTILINE)

# ParallelCluster fetches the action's script, makes it executable and runs it with the arguments.
_ACTION = """
script="$(mktemp)"
trap 'rm -f "$script"' EXIT
aws s3 cp --only-show-errors "$1" "$script"
chmod +x "$script"
shift
"$script" "$@"
"""


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """The bucket of a cluster, as a folder that its nodes see.

    Args:
        folder: replaces S3; buckets are folders in it.
        assets: sources of the bundles.
    """

    folder: Path
    settings: Settings
    assets: Path = ASSETS

    @property
    def prefix(self) -> Path:
        """Folder of the cluster's scripts."""
        return self.folder / "bucket" / bootstrap_prefix(self.settings.cluster_name)

    def publish(self) -> str:
        """Upload the scripts as a deploy does; return the checksum of the bundle."""
        sha256, files = build_uploads(
            settings=self.settings, config=config_before_deploy(self.settings), assets=self.assets
        )
        for key, content in files.items():
            path = self.prefix / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return sha256


@dataclass(frozen=True, kw_only=True)
class Node:
    """A throw-away machine with the files that ParallelCluster writes before it runs our script.

    Args:
        machine: machine that sees the bucket's folder at BUCKETS.
        node_type: HeadNode, ComputeFleet or LoginNode.
    """

    machine: Machine
    bucket: Bucket
    node_type: str = "ComputeFleet"

    def boot(self, bundle_sha256: str) -> None:
        """Write the files of ParallelCluster's boot; the cluster config names this bundle."""
        write_node(
            self.machine.disk,
            settings=self.bucket.settings,
            node_type=self.node_type,
            bundle_sha256=bundle_sha256,
        )

    def start(self, *, network: bool = True) -> Finished:
        """Run the node's OnNodeConfigured action from the bucket."""
        return self.run("start", network=network)

    def run(self, script: str, *, network: bool = True, timeout_s: int = 300) -> Finished:
        """Run commands on the node; `start` in them runs the action."""
        return self.machine.run(*self._with_start(script), network=network, timeout_s=timeout_s)

    def process(self, script: str, *, network: bool = True) -> subprocess.Popen[str]:
        """Start the same commands as a process; killing it is a power failure of the node."""
        return subprocess.Popen(
            self.machine.command(*self._with_start(script), network=network),
            cwd=FOLDER,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _with_start(self, script: str) -> list[str]:
        start = " && ".join(
            shlex.join(["bash", "-euc", _ACTION, "action", *words])
            for words in actions(self.bucket.settings, self.node_type)
        )
        # Both outputs in order: ParallelCluster logs both.
        return ["bash", "-uc", f"start() {{ {{ {start}; }} >&2; }}\n{script}"]


@contextmanager
def new_node(*, bucket: Bucket, node_type: str = "ComputeFleet", image: Disk | None = None) -> Iterator[Node]:
    """Create a node that has not started yet, until the end of the block.

    Args:
        image: disk of the machine on which its image was built; default: the official image.

    Raises:
        NoRootError: machines cannot be made here; the message has the reason.
    """
    with new_machine(made_from=image, hostname=node_type.lower(), shown={BUCKETS: bucket.folder}) as machine:
        if not image:
            write_image(machine.disk)
        yield Node(machine=machine, bucket=bucket, node_type=node_type)


def step_messages(started: Finished) -> dict[str, str]:
    """Return the first log message of each step, without its seconds."""
    lines: dict[str, str] = {}
    for found in _LOG_LINE.finditer(started.stderr):
        lines.setdefault(found["step"], re.sub(r", \d+ s\b", "", found["said"]))
    return lines
