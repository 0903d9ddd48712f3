"""A node of folders for bootstrap.sh: its disk, its shared folder, and a bucket for `aws s3 cp`."""

import hashlib
import shutil
import subprocess
from pathlib import Path

import yaml

from training_cluster.catalog.steps import load_steps
from training_cluster.cluster.bundle import build_bundle
from training_cluster.paths import ASSETS
from training_cluster.rules.context import read_settings

# What a script says, in its order: ParallelCluster keeps both.
ONE_TEXT = ("bash", "-c", 'exec bash "$@" >&2', "_")


class Node:
    """A node's disk and shared folder under one folder, and a bucket that is another folder."""

    def __init__(self, root: Path) -> None:
        self.root, self.bucket, self.shared = root, root / "bucket", root / "fsx"
        self.prefix = self.bucket / "bootstrap" / "training"
        self.prefix.mkdir(parents=True)
        self.shared.mkdir()
        program = root / "bin" / "aws"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\ncp "{self.bucket}/${{4#s3://bucket/}}" "$5"\n')
        program.chmod(0o755)
        sleep = root / "bin" / "sleep"
        sleep.write_text("#!/bin/sh\n")
        sleep.chmod(0o755)

    @property
    def slash(self) -> Path:
        return self.root / "slash"

    @property
    def bundles(self) -> Path:
        return self.slash / "opt" / "training-cluster" / "bundles"

    def publish(self, family: str = "p4d", **flags: str) -> str:
        """Put a bundle in the bucket, and its checksum in the cluster config; return the config.

        Without install steps: they would install on this machine (test_node_start.py runs them in a root).
        """
        if not (assets := self.root / "assets").exists():
            shutil.copytree(ASSETS / "bootstrap", assets / "bootstrap")
            shutil.copytree(ASSETS / "training", assets / "training")
            for step in load_steps(assets):
                if step.moment != "start":
                    step.path.unlink()
        bundle = build_bundle(settings=read_settings({"family": family, **flags}), assets=assets)
        digest = hashlib.sha256(bundle).hexdigest()
        (self.prefix / f"bundle-{digest}.tar.gz").write_bytes(bundle)
        self.want(digest)
        return digest

    def want(self, digest: str) -> None:
        """Name a bundle in the cluster config at its place on nodes."""
        action = {"Script": "s3://bucket/x", "Args": ["s3://bucket/x", f"bundle-sha256={digest}"]}
        for folder in ("shared", "shared_login_nodes"):
            config = self.slash / "opt" / "parallelcluster" / folder / "cluster-config.yaml"
            config.parent.mkdir(parents=True, exist_ok=True)
            config.write_text(yaml.safe_dump({"HeadNode": {"CustomActions": {"OnNodeUpdated": action}}}))

    @property
    def places(self) -> dict[str, str]:
        """Return the places of the files that have fixed paths on a real node."""
        return {
            "TRAINING_SHARED": str(self.shared),
            "TRAINING_EFS": str(self.root / "efs"),
            "TRAINING_ROOT": str(self.root / "slash"),
            "TRAINING_ETC": str(self.root / "etc"),
        }

    def command(self, *arguments: str) -> list[str]:
        """Return the command with which ParallelCluster runs it."""
        script = ASSETS / "bootstrap" / "bootstrap.sh"
        return [*ONE_TEXT, str(script), "s3://bucket/bootstrap/training", *arguments]

    def environment_of(self, node_type: str) -> dict[str, str]:
        return self.places | {"PATH": f"{self.root / 'bin'}:/usr/bin:/bin", "NODE_TYPE": node_type}

    def boot(self, *arguments: str, node_type: str = "HeadNode") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            env=self.environment_of(node_type),
            capture_output=True,
            text=True,
            check=False,
        )

    def environment(self, partition: str) -> Path:
        return self.root / "etc" / "partitions" / f"{partition}.env"

    def files(self) -> dict[str, int]:
        """Return every file but logs, with the time of its last change."""
        found = [
            p for p in self.root.rglob("*") if p.is_file() and self.slash / "var" / "log" not in p.parents
        ]
        return {str(p): p.stat().st_mtime_ns for p in found}


def be_a_parallelcluster_node(
    node: Node, *, node_type: str = "HeadNode", queue: str = "gpu", systemctl: str = "true"
) -> Path:
    """Make the folders a node of ParallelCluster, with systemd; return the folder of units."""
    etc = node.root / "slash" / "etc"
    (etc / "parallelcluster").mkdir(parents=True)
    (etc / "parallelcluster" / "cfnconfig").write_text(
        "stack_name=training\ncfn_preinstall_args=()\ncfn_region=us-east-1\n"
        f"cfn_node_type={node_type}\ncfn_scheduler_queue_name={queue}\n"
    )
    program = node.root / "bin" / "systemctl"
    program.write_text(f'#!/bin/sh\necho "$*" >>"{node.root}/systemctl"\n{systemctl}\n')
    program.chmod(0o755)
    # A real node has a Python that can make environments, so nothing installs one; and iptables.
    for name in (
        "python3.13",
        *(f"{which}{part}" for which in ("iptables", "ip6tables") for part in ("", "-restore")),
    ):
        program = node.root / "bin" / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    return etc / "systemd" / "system"
