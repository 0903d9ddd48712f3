"""bootstrap.sh as a node runs it; `aws s3 cp` is a copy from a folder here (the slow tests use S3)."""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from training_cluster.bundle import build_bundle
from training_cluster.families import load_base
from training_cluster.settings import Settings
from training_cluster.steps import ASSETS, budget_s, load_steps, start_steps

METRICS = "training-cluster-metrics"
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
        """Put a bundle in the bucket, and its checksum in the cluster config, which is returned.

        Without install steps: they would install on this machine (test_node_start.py runs them in a root).
        """
        if not (assets := self.root / "assets").exists():
            shutil.copytree(ASSETS / "bootstrap", assets / "bootstrap")
            shutil.copytree(ASSETS / "training", assets / "training")
            for step in load_steps(assets):
                if step.moment != "start":
                    step.path.unlink()
        bundle = build_bundle(settings=Settings.from_context({"family": family, **flags}), assets=assets)
        digest = hashlib.sha256(bundle).hexdigest()
        (self.prefix / f"bundle-{digest}.tar.gz").write_bytes(bundle)
        self.want(digest)
        return digest

    def want(self, digest: str) -> None:
        """Name a bundle in the cluster config, where ParallelCluster has it for nodes."""
        action = {"Script": "s3://bucket/x", "Args": ["s3://bucket/x", f"bundle-sha256={digest}"]}
        for folder in ("shared", "shared_login_nodes"):
            config = self.slash / "opt" / "parallelcluster" / folder / "cluster-config.yaml"
            config.parent.mkdir(parents=True, exist_ok=True)
            config.write_text(yaml.safe_dump({"HeadNode": {"CustomActions": {"OnNodeUpdated": action}}}))

    def boot(self, *arguments: str, node_type: str = "HeadNode") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                *ONE_TEXT,
                str(ASSETS / "bootstrap" / "bootstrap.sh"),
                "s3://bucket/bootstrap/training",
                *arguments,
            ],
            env={
                "PATH": f"{self.root / 'bin'}:/usr/bin:/bin",
                "NODE_TYPE": node_type,
                "TRAINING_SHARED": str(self.shared),
                "TRAINING_EFS": str(self.root / "efs"),
                "TRAINING_ROOT": str(self.root / "slash"),
                "TRAINING_ETC": str(self.root / "etc"),
            },
            capture_output=True,
            text=True,
            check=False,
        )

    def environment(self, partition: str) -> Path:
        return self.root / "etc" / "partitions" / f"{partition}.env"

    def files(self) -> dict[str, int]:
        """Every file with the time of its last change; logs apart."""
        found = [
            p for p in self.root.rglob("*") if p.is_file() and self.slash / "var" / "log" not in p.parents
        ]
        return {str(p): p.stat().st_mtime_ns for p in found}


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_the_head_node_gets_environment_folders_and_scripts(node: Node) -> None:
    node.publish()
    done = node.boot()
    assert done.returncode == 0, done.stderr
    assert "FAMILY='p4d'" in node.environment("gpu").read_text()
    assert (node.shared / "training" / "job.slurm").is_file()
    assert (node.root / "efs").stat().st_mode & 0o7777 == 0o1777
    for folder in ("datasets", "checkpoints", "runs", "venvs"):
        assert (node.shared / folder).stat().st_mode & 0o7777 == 0o1777


def test_a_compute_node_leaves_the_shared_folder_alone(node: Node) -> None:
    node.publish()
    assert node.boot(node_type="ComputeFleet").returncode == 0
    assert node.environment("gpu").is_file()
    assert list(node.shared.iterdir()) == []


def test_a_second_boot_changes_nothing_that_jobs_see(node: Node) -> None:
    node.publish()
    node.boot()
    checkpoint = node.shared / "checkpoints" / "step-1"
    checkpoint.write_text("precious")
    before = node.files()
    assert node.boot().returncode == 0
    after = node.files()
    assert before.keys() == after.keys()
    assert {path for path in after if before[path] != after[path]} == {
        str(node.environment("gpu")),
        str(node.root / "etc" / "bootstrap-arguments"),
    }


def test_a_changed_script_replaces_the_old_ones_at_once(node: Node) -> None:
    node.publish()
    node.boot()
    (node.shared / "training" / "job.slurm").write_text("changed by hand\n")
    digest = node.publish("m6i")
    done = node.boot(f"bundle-sha256={digest}")
    assert done.returncode == 0, done.stderr
    assert (node.shared / "training" / "job.slurm").read_text().startswith("#!/usr/bin/env bash")
    assert "FAMILY='m6i'" in node.environment("cpu").read_text()


def test_a_damaged_bundle_is_refused_and_nothing_is_installed(node: Node) -> None:
    digest = node.publish()
    (node.prefix / f"bundle-{digest}.tar.gz").write_bytes(b"half of it")
    done = node.boot()
    assert done.returncode == 1
    assert "is not what the cluster config asks for" in done.stderr.splitlines()[-1]
    assert not (node.root / "etc").exists()
    assert list(node.bundles.iterdir()) == []


def test_of_two_bundles_a_node_takes_the_one_that_its_cluster_config_names(node: Node) -> None:
    old = node.publish()
    node.publish("m6i")
    node.want(old)
    assert node.boot().returncode == 0
    assert node.environment("gpu").is_file()
    assert not node.environment("cpu").exists()


def test_a_bundle_that_is_there_is_not_fetched_again(node: Node) -> None:
    digest = node.publish()
    node.boot()
    (node.prefix / f"bundle-{digest}.tar.gz").unlink()
    done = node.boot()
    assert done.returncode == 0, done.stderr


def test_the_current_bundle_and_its_source_are_noted_for_the_prolog(node: Node) -> None:
    digest = node.publish()
    node.boot()
    assert (node.bundles / "current").readlink() == Path(digest)
    assert (node.root / "etc" / "bootstrap-arguments").read_text() == "s3://bucket/bootstrap/training\n"


def test_a_bundle_whose_steps_failed_is_not_the_current_one(node: Node) -> None:
    digest = node.publish()
    node.boot()
    (node.root / "assets" / "bootstrap" / "steps" / "99-fail.sh").write_text(
        "# Moment: start\n# Recipes: all\n# Nodes: all\n"
        "# Where: any\n# Required: yes\n# Budget: 9 s\nexit 1\n"
    )
    node.publish()
    assert node.boot().returncode == 1
    assert (node.bundles / "current").readlink() == Path(digest)


@pytest.mark.parametrize("config", [None, "HeadNode: {}\n"], ids=["no config", "no checksum in it"])
def test_a_node_that_is_told_no_checksum_runs_nothing(node: Node, config: str | None) -> None:
    node.publish()
    path = node.slash / "opt" / "parallelcluster" / "shared" / "cluster-config.yaml"
    path.unlink() if config is None else path.write_text(config)
    done = node.boot()
    assert done.returncode == 1
    assert str(path) in done.stderr.splitlines()[-1]
    assert not node.bundles.exists()


def test_a_login_node_reads_the_config_that_login_nodes_have(node: Node) -> None:
    node.publish()
    (node.slash / "opt" / "parallelcluster" / "shared" / "cluster-config.yaml").unlink()
    assert node.boot(node_type="LoginNode").returncode == 0
    assert node.boot(node_type="ComputeFleet").returncode == 1


def test_an_argument_that_is_no_checksum_is_refused(node: Node) -> None:
    node.publish()
    done = node.boot("0" * 64)
    assert done.returncode == 1
    assert "is no checksum: usage: bootstrap.sh" in done.stderr.splitlines()[-1]


def test_a_missing_object_is_tried_again_and_then_named(node: Node) -> None:
    node.want("0" * 64)
    done = node.boot()
    assert done.returncode == 1
    assert "attempt 5 of 5" in done.stderr
    assert (
        f"gave up on s3://bucket/bootstrap/training/bundle-{'0' * 64}.tar.gz" in done.stderr.splitlines()[-1]
    )


def test_an_unknown_node_type_is_refused(node: Node) -> None:
    node.publish()
    done = node.boot(node_type="Toaster")
    assert done.returncode == 1
    assert "unknown node type 'Toaster'" in done.stderr


def test_every_node_has_the_seeds_paths_of_the_shared_folders(node: Node) -> None:
    node.publish("trn1")
    assert node.boot(node_type="ComputeFleet").returncode == 0
    links = {p.name: str(p.readlink()) for p in node.slash.iterdir() if p.is_symlink()}
    assert links == {"lustre": "/fsx", "neuron_shared": "/efs"}


def test_with_home_on_efs_its_shared_folder_is_a_link_into_it(node: Node) -> None:
    node.publish("trn1", home="efs")
    assert node.boot().returncode == 0
    assert (node.root / "slash" / "efs").readlink() == Path("/home/efs")
    assert (node.root / "slash" / "neuron_shared").readlink() == Path("/efs")
    assert (node.root / "slash" / "home" / "efs").is_dir()


def test_what_stands_in_a_links_place_is_left_alone_and_said(node: Node) -> None:
    node.publish()
    mine = node.root / "slash" / "lustre" / "mine"
    mine.parent.mkdir(parents=True)
    mine.write_text("precious")
    done = node.boot()
    assert done.returncode == 0
    assert "lustre is there already: not linked to /fsx" in done.stderr
    assert mine.read_text() == "precious"


def test_an_efs_that_somebody_uses_keeps_its_root_as_it_is(node: Node) -> None:
    node.publish()
    (node.root / "efs" / "theirs").mkdir(parents=True)
    before = (node.root / "efs").stat().st_mode
    assert node.boot().returncode == 0
    assert (node.root / "efs").stat().st_mode == before


def _real_node(node: Node, *, queue: str = "gpu", systemctl: str = "true") -> Path:
    """Make it a node of ParallelCluster's, with systemd; returns where units are."""
    etc = node.root / "slash" / "etc"
    (etc / "parallelcluster").mkdir(parents=True)
    (etc / "parallelcluster" / "cfnconfig").write_text(
        "stack_name=training\ncfn_preinstall_args=()\ncfn_region=us-east-1\n"
        f"cfn_scheduler_queue_name={queue}\n"
    )
    program = node.root / "bin" / "systemctl"
    program.write_text(f'#!/bin/sh\necho "$*" >>"{node.root}/systemctl"\n{systemctl}\n')
    program.chmod(0o755)
    # A real node has a Python that can make environments, so nothing installs one.
    python = node.root / "bin" / "python3.13"
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    return etc / "systemd" / "system"


def _what_runs(units: Path) -> list[str]:
    (line,) = re.findall("^ExecStart=(.*)$", (units / f"{METRICS}.service").read_text(), re.MULTILINE)
    return shlex.split(line)


@pytest.mark.parametrize(
    ("family", "node_type", "queue", "program"),
    [
        ("p4d", "HeadNode", "", ["node_states.py"]),
        ("p4d", "ComputeFleet", "gpu", ["accelerators.py", "gpu"]),
        ("trn1", "ComputeFleet", "neuron", ["accelerators.py", "neuron"]),
    ],
)
def test_a_node_publishes_what_it_alone_knows_once_a_minute(
    node: Node, family: str, node_type: str, queue: str, program: list[str]
) -> None:
    units = _real_node(node, queue=queue)
    digest = node.publish(family)
    done = node.boot(node_type=node_type)
    assert done.returncode == 0, done.stderr
    _, interpreter, path, *arguments = _what_runs(units)
    assert interpreter == "python3"
    assert Path(path).is_file()
    assert Path(path) == node.bundles / digest / "bootstrap" / "metrics" / program[0]
    assert arguments == [*program[1:], "--cluster", "training", "--region", "us-east-1"]
    assert "OnCalendar=minutely" in (units / f"{METRICS}.timer").read_text()
    assert (node.root / "systemctl").read_text().split() == [
        *("daemon-reload", "enable", "--now", f"{METRICS}.timer")
    ]


@pytest.mark.parametrize(
    ("node_type", "queue"), [("LoginNode", ""), ("ComputeFleet", "cpu")], ids=["login", "cpu"]
)
def test_a_node_with_nothing_to_publish_has_no_timer(node: Node, node_type: str, queue: str) -> None:
    units = _real_node(node, queue=queue)
    node.publish("p4d", cpu_queue="on")
    assert node.boot(node_type=node_type).returncode == 0
    assert not units.exists()


def test_a_rehearsal_starts_no_timer(node: Node) -> None:
    units = _real_node(node)
    (node.root / "slash" / "etc" / "parallelcluster" / "cfnconfig").unlink()
    node.publish()
    assert node.boot().returncode == 0
    assert not units.exists()
    assert not (node.root / "systemctl").exists()


def test_after_an_update_the_timer_runs_the_new_bundles_program(node: Node) -> None:
    units = _real_node(node)
    node.publish()
    node.boot()
    digest = node.publish("p5")
    assert node.boot(f"bundle-sha256={digest}").returncode == 0
    assert digest in _what_runs(units)[2]
    assert sorted(path.name for path in units.iterdir()) == [f"{METRICS}.service", f"{METRICS}.timer"]


def test_a_node_that_cannot_publish_starts_all_the_same_and_says_so(node: Node) -> None:
    _real_node(node, systemctl="echo 'no systemd here' >&2; exit 1")
    node.publish()
    done = node.boot(node_type="ComputeFleet")
    assert done.returncode == 0, done.stderr
    assert "this node publishes no metrics" in done.stderr
    assert "no systemd here" in done.stderr


def test_the_head_node_has_time_for_all_its_steps() -> None:
    base = load_base()
    ours = budget_s(start_steps(node="HeadNode", recipe="cpu"))
    assert base.compute_node.boot_s + ours <= base.head_node.bootstrap_timeout_s
