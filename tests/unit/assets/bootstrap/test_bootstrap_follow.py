"""The timer of head and login nodes: it installs the bundle that the cluster config now names."""

import fcntl
import os
import re
import shlex
import subprocess
import time
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.bootstrap_node import Node, be_a_parallelcluster_node


class Following:
    """A node that has started, with its timer."""

    def __init__(self, root: Path, node_type: str) -> None:
        self.node = Node(root)
        self.units = be_a_parallelcluster_node(self.node, node_type=node_type)
        folder = {"HeadNode": "shared", "LoginNode": "shared_login_nodes"}[node_type]
        self.config = self.node.slash / "opt" / "parallelcluster" / folder / "cluster-config.yaml"
        self.first = self.node.publish("p4d")
        assert self.node.boot(node_type=node_type).returncode == 0

    def named(self, digest: str, *, minutes_ago: float) -> None:
        """Set the age of the cluster config."""
        self.node.want(digest)
        then = time.time() - 60 * minutes_ago
        os.utime(self.config, (then, then))

    def tick(self) -> subprocess.CompletedProcess[str]:
        """Run the unit's command, as systemd does."""
        unit = (self.units / "training-cluster-follow.service").read_text()
        ((environment, command),) = re.findall("^Environment=(.*)\nExecStart=(.*)$", unit, re.MULTILINE)
        variables = dict(word.split("=", 1) for word in shlex.split(environment))
        return subprocess.run(
            shlex.split(command), env=self.node.places | variables, capture_output=True, text=True
        )

    def current(self) -> str:
        return str((self.node.bundles / "current").readlink())

    def log(self) -> str:
        return (self.node.slash / "var/log/training-cluster/bootstrap.log").read_text()


@pytest.fixture(params=["HeadNode", "LoginNode"])
def following(request: pytest.FixtureRequest, tmp_path: Path) -> Following:
    return Following(tmp_path, request.param)


@pytest.fixture
def head(tmp_path: Path) -> Following:
    return Following(tmp_path, "HeadNode")


@pytest.mark.slow
def test_a_node_that_missed_an_update_and_one_that_missed_its_rollback_follow(following: Following) -> None:
    second = following.node.publish("m6i")
    following.named(second, minutes_ago=11)
    done = following.tick()
    assert done.returncode == 0, done.stderr
    assert following.current() == second
    assert following.node.environment("cpu").is_file()
    following.named(following.first, minutes_ago=11)
    assert following.tick().returncode == 0
    assert following.current() == following.first
    assert f"missed an update or a rollback: it runs {second}\n" in following.log()


@pytest.mark.slow
def test_the_head_nodes_training_scripts_are_those_of_the_bundle_again(head: Following) -> None:
    (head.node.root / "assets" / "training" / "job.slurm").write_text("#!/bin/bash\n# newer\n")
    newer = head.node.publish()
    head.node.boot(f"bundle-sha256={newer}")
    installed = head.node.shared / "training" / "job.slurm"
    assert "# newer" in installed.read_text()
    head.named(head.first, minutes_ago=11)
    assert head.tick().returncode == 0
    assert "# newer" not in installed.read_text()


@pytest.mark.slow
def test_while_an_update_may_be_under_way_nothing_is_done(head: Following) -> None:
    head.named(head.node.publish("m6i"), minutes_ago=9)
    done = head.tick()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert head.current() == head.first


@pytest.mark.slow
def test_a_node_of_the_right_bundle_asks_nobody_and_changes_nothing(head: Following) -> None:
    head.named(head.first, minutes_ago=60)
    (head.node.prefix / f"bundle-{head.first}.tar.gz").unlink()
    before, log = head.node.files(), head.log()
    done = head.tick()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (head.node.files(), head.log()) == (before, log)


@pytest.mark.slow
def test_a_bundle_that_cannot_be_had_is_said_and_tried_again(head: Following) -> None:
    second = head.node.publish("m6i")
    head.named(second, minutes_ago=11)
    shipped = head.node.prefix / f"bundle-{second}.tar.gz"
    away = shipped.rename(shipped.with_name("away"))
    assert head.tick().returncode == 1
    assert f"gave up on s3://bucket/bootstrap/training/{shipped.name}" in head.log()
    assert head.current() == head.first
    away.rename(shipped)
    assert head.tick().returncode == 0
    assert head.current() == second


@pytest.mark.slow
def test_of_two_at_a_time_the_timers_goes_and_an_updates_waits(head: Following) -> None:
    second = head.node.publish("m6i")
    head.named(second, minutes_ago=11)
    with (head.node.slash / "run" / "training-cluster.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert head.tick().returncode == 0
        assert head.current() == head.first
        update = subprocess.Popen(
            head.node.command(f"bundle-sha256={second}"),
            env=head.node.environment_of("HeadNode"),
            stderr=subprocess.PIPE,
        )
        with pytest.raises(subprocess.TimeoutExpired):
            update.communicate(timeout=2)
        assert head.current() == head.first
    update.communicate(timeout=60)
    assert update.returncode == 0
    assert head.current() == second
