"""A node of ParallelCluster's, as a throw-away machine: its files, its bucket, and how it starts."""

from __future__ import annotations

import hashlib
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rehearsal.node_root.base import FOLDER
from rehearsal.node_root.disk import Disk
from rehearsal.node_root.machine import Finished, Machine, new_machine
from rehearsal.node_root.parallelcluster import action, write_image, write_node
from training_cluster.cluster.bundle import build_bundle
from training_cluster.cluster.nodes import bootstrap_prefix
from training_cluster.flags.settings import Settings
from training_cluster.paths import ASSETS

BUCKETS = "/srv/s3"
_LOG_LINE = re.compile(r"bootstrap: step (?P<step>\S+): (?P<said>.+)$", re.MULTILINE)

# As ParallelCluster does: it fetches the action's script, makes it executable and runs it with the arguments.
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
    """The bucket of a cluster, as a folder here that its nodes see.

    Args:
        folder: stands for S3; buckets are folders in it.
        assets: what bundles are made of.
    """

    folder: Path
    settings: Settings
    assets: Path = ASSETS

    @property
    def prefix(self) -> Path:
        """Where the cluster's scripts are."""
        return self.folder / "bucket" / bootstrap_prefix(self.settings.cluster_name)

    def publish(self) -> str:
        """Ship the scripts as a deploy does; the checksum of the bundle."""
        bundle = build_bundle(settings=self.settings, assets=self.assets)
        sha256 = hashlib.sha256(bundle).hexdigest()
        self.prefix.mkdir(parents=True, exist_ok=True)
        (self.prefix / f"bundle-{sha256}.tar.gz").write_bytes(bundle)
        (self.prefix / "bootstrap.sh").write_bytes((self.assets / "bootstrap" / "bootstrap.sh").read_bytes())
        return sha256


@dataclass(frozen=True, kw_only=True)
class Node:
    """A throw-away machine with what ParallelCluster puts on a node before it runs our script.

    Args:
        machine: it sees the bucket's folder at BUCKETS.
        node_type: HeadNode, ComputeFleet or LoginNode.
    """

    machine: Machine
    bucket: Bucket
    node_type: str = "ComputeFleet"

    def boot(self, bundle_sha256: str) -> None:
        """Be as ParallelCluster leaves it when it comes to us; the cluster config names this bundle."""
        write_node(
            self.machine.disk,
            settings=self.bucket.settings,
            node_type=self.node_type,
            bundle_sha256=bundle_sha256,
        )

    def start(self, *, network: bool = True) -> Finished:
        """Run the node's OnNodeConfigured action, out of the bucket."""
        return self.run("start", network=network)

    def run(self, script: str, *, network: bool = True, timeout_s: int = 300) -> Finished:
        """Run commands on the node; `start` among them runs the action."""
        return self.machine.run(*self._with_start(script), network=network, timeout_s=timeout_s)

    def process(self, script: str, *, network: bool = True) -> subprocess.Popen[str]:
        """The same, while it runs. Who kills it takes the node's power away."""
        return subprocess.Popen(
            self.machine.command(*self._with_start(script), network=network),
            cwd=FOLDER,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _with_start(self, script: str) -> list[str]:
        words = action(self.bucket.settings, self.node_type)
        start = shlex.join(["bash", "-euc", _ACTION, "action", *words])
        # As one text, in its order: ParallelCluster keeps both.
        return ["bash", "-uc", f"start() {{ {start} >&2; }}\n{script}"]


@contextmanager
def new_node(*, bucket: Bucket, node_type: str = "ComputeFleet", image: Disk | None = None) -> Iterator[Node]:
    """A node that was not started yet, until the end of the block.

    Args:
        image: disk of the machine that its image was built on; default: the official image.

    Raises:
        NoRootError: there can be none here; the message says why.
    """
    with new_machine(made_from=image, hostname=node_type.lower(), shown={BUCKETS: bucket.folder}) as machine:
        if not image:
            write_image(machine.disk)
        yield Node(machine=machine, bucket=bucket, node_type=node_type)


def what_it_said(started: Finished) -> dict[str, str]:
    """What the log says of each step, without its seconds; the first time, where it says so twice."""
    lines: dict[str, str] = {}
    for found in _LOG_LINE.finditer(started.stderr):
        lines.setdefault(found["step"], re.sub(r", \d+ s\b", "", found["said"]))
    return lines


def last_line(finished: Finished) -> str:
    """What ParallelCluster shows of a start that failed."""
    return (finished.stderr.strip().splitlines() or [""])[-1]
