"""bootstrap.sh as a node runs it, with a bundle of one line; slow tests run real steps, with S3."""

import fcntl
import hashlib
import io
import os
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

from training_cluster.catalog.families import load_base
from training_cluster.catalog.steps import budget_s, start_steps
from training_cluster.paths import ASSETS

SOURCE = "s3://bucket/bootstrap/training"
# What a script says, in its order: ParallelCluster keeps both.
COMMAND = ("bash", "-c", 'exec bash "$@" >&2', "_", str(ASSETS / "bootstrap" / "bootstrap.sh"), SOURCE)


class Node:
    """A node's disk under one folder, and a bucket that is another folder."""

    def __init__(self, root: Path) -> None:
        self.root, self.bucket = root, root / "bucket"
        self.bucket.mkdir()
        self.bundles = root / "opt" / "training-cluster" / "bundles"
        for name, script in {"aws": f'cp "{self.bucket}/$(basename "$4")" "$5"', "sleep": ""}.items():
            program = root / "bin" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755)
        self.node_type = "HeadNode"

    def config(self) -> Path:
        """Return the place of the cluster config on a node of this type."""
        folder = "shared_login_nodes" if self.node_type == "LoginNode" else "shared"
        return self.root / "opt" / "parallelcluster" / folder / "cluster-config.yaml"

    def publish(self, steps: str = "true") -> str:
        """Put a bundle in the bucket, and its checksum in the cluster config; return the checksum."""
        text = f'echo "$BOOTSTRAP_MOMENT $1 $NODE_TYPE $BUNDLE" >>{self.root}/ran\n{steps}\n'.encode()
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w:gz") as archive:
            member = tarfile.TarInfo("bootstrap/run-steps.sh")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
        digest = hashlib.sha256(file.getvalue()).hexdigest()
        self.shipped(digest).write_bytes(file.getvalue())
        self.want(digest)
        return digest

    def shipped(self, digest: str) -> Path:
        return self.bucket / f"bundle-{digest}.tar.gz"

    def want(self, digest: str, *, minutes_ago: float = 0) -> None:
        """Name a bundle in the cluster config, which was written a while ago."""
        config = self.config()
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(f"HeadNode: {{OnNodeUpdated: {{Args: [bundle-sha256={digest}]}}}}\n")
        os.utime(config, (time.time() - 60 * minutes_ago,) * 2)

    def environment(self, moment: str) -> dict[str, str]:
        return {
            "PATH": f"{self.root / 'bin'}:/usr/bin:/bin",
            "TRAINING_ROOT": str(self.root),
            "TRAINING_ETC": str(self.root / "etc"),
            "NODE_TYPE": self.node_type,
            "BOOTSTRAP_MOMENT": moment,
        }

    def boot(self, *arguments: str, moment: str = "start") -> subprocess.CompletedProcess[str]:
        environment = self.environment(moment)
        return subprocess.run([*COMMAND, *arguments], env=environment, capture_output=True, text=True)

    def boots(self, *arguments: str, moment: str = "start") -> str:
        """Boot with success; return the messages."""
        done = self.boot(*arguments, moment=moment)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def fails(self, *words: str, arguments: tuple[str, ...] = (), moment: str = "start") -> None:
        """Boot with a failure whose last line has these words."""
        done = self.boot(*arguments, moment=moment)
        assert done.returncode == 1, done.stderr
        assert [word for word in words if word not in done.stderr.splitlines()[-1]] == [], done.stderr

    def current(self) -> str:
        return str((self.bundles / "current").readlink())

    def ran(self) -> list[str]:
        return (self.root / "ran").read_text().splitlines()

    def log(self) -> str:
        return (self.root / "var/log/training-cluster/bootstrap.log").read_text()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    node = Node(tmp_path)
    (tmp_path / "var/log/training-cluster").mkdir(parents=True)
    return node


def test_a_node_runs_its_configs_bundle(node: Node) -> None:
    """It is fetched once, and noted for the prolog."""
    first = node.publish()
    node.publish("exit 1")
    node.want(first)
    node.boots()
    assert node.ran() == [f"start start HeadNode {node.bundles / first}"]
    assert (node.current(), (node.root / "etc" / "bootstrap-arguments").read_text()) == (first, f"{SOURCE}\n")
    node.shipped(first).unlink()
    node.boots()
    second = node.publish("echo newer")
    node.want(first)
    node.boots(f"bundle-sha256={second}", moment="refresh")
    assert node.ran()[-1] == f"refresh refresh HeadNode {node.bundles / second}"
    assert node.current() == second


def test_a_bundle_whose_steps_failed_is_not_current(node: Node) -> None:
    digest = node.publish()
    node.boots()
    node.publish("exit 1")
    assert node.boot().returncode == 1
    assert node.current() == digest


def test_a_damaged_bundle_installs_nothing(node: Node) -> None:
    digest = node.publish()
    node.shipped(digest).write_bytes(b"half of it")
    node.fails("is not the bundle of the cluster config")
    assert not (node.root / "etc").exists()
    assert list(node.bundles.iterdir()) == []


def test_the_next_start_finishes_a_killed_download(node: Node) -> None:
    digest, aws = node.publish(), node.root / "bin" / "aws"
    whole = aws.read_text()
    aws.write_text('#!/bin/sh\necho half >"$5"; kill -KILL $PPID\n')
    assert node.boot().returncode == -9
    aws.write_text(whole)
    node.boots()
    assert node.current() == digest


def test_without_a_checksum_nothing_runs(node: Node) -> None:
    node.publish()
    node.fails("is not a checksum: usage: bootstrap.sh", arguments=("0" * 64,))
    node.config().write_text("HeadNode: {}\n")
    node.fails(str(node.config()), "names no bundle")
    node.config().unlink()
    node.fails(str(node.config()), "is missing")
    node.want("0" * 64)
    done = node.boot()
    assert "attempt 9 of 9" in done.stderr
    assert f"gave up on {SOURCE}/bundle-{'0' * 64}.tar.gz" in done.stderr.splitlines()[-1]
    node.node_type = "Toaster"
    node.fails("unknown node type 'Toaster'")
    assert not (node.root / "ran").exists()


@pytest.mark.parametrize("node_type", ["HeadNode", "LoginNode"])
def test_a_node_follows_what_it_missed(node: Node, node_type: str) -> None:
    """An update, its rollback, and a bundle that cannot be fetched at first."""
    node.node_type = node_type
    first = node.publish()
    node.boots()
    second = node.publish("echo newer")
    node.want(second, minutes_ago=9)
    assert node.boots(moment="follow") == "", "an update may be in progress"
    assert node.current() == first
    node.want(second, minutes_ago=11)
    away = node.shipped(second).rename(node.bucket / "away")
    node.fails(f"gave up on {SOURCE}/{node.shipped(second).name}", moment="follow")
    assert node.current() == first
    away.rename(node.shipped(second))
    node.boots(moment="follow")
    assert node.ran()[-1] == f"follow start {node_type} {node.bundles / second}"
    assert node.current() == second
    assert f"missed an update or a rollback: it runs {first}\n" in node.log()
    node.want(first, minutes_ago=11)
    node.boots(moment="follow")
    assert node.current() == first
    before = node.log(), node.ran()
    assert node.boots(moment="follow") == "", "it has the right bundle"
    assert (node.log(), node.ran()) == before


def test_the_timer_goes_and_an_update_waits(node: Node) -> None:
    """While another bootstrap.sh runs."""
    first = node.publish()
    node.boots()
    second = node.publish("echo newer")
    node.want(second, minutes_ago=11)
    with (node.root / "run" / "training-cluster.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        node.boots(moment="follow")
        update = subprocess.Popen(COMMAND, env=node.environment("start"), stderr=subprocess.PIPE)
        with pytest.raises(subprocess.TimeoutExpired):
            update.communicate(timeout=0.5)
        assert node.current() == first
    update.communicate(timeout=60)
    assert (update.returncode, node.current()) == (0, second)


def test_the_head_node_has_time_for_steps() -> None:
    base = load_base()
    ours = budget_s(start_steps(node="HeadNode", recipe="cpu"))
    assert base.compute_node.boot_s + ours <= base.head_node.bootstrap_timeout_s
