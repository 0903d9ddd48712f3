"""bootstrap.sh as a node runs it; `aws s3 cp` is a copy from a folder here (the slow tests use S3)."""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from training_cluster.bundle import ASSETS, bootstrap_budget_s, build_bundle
from training_cluster.families import load_base
from training_cluster.problems import ConfigurationError
from training_cluster.settings import Settings

METRICS = "training-cluster-metrics"


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

    def publish(self, family: str = "p4d", **flags: str) -> str:
        bundle = build_bundle(settings=Settings.from_context({"family": family, **flags}))
        digest = hashlib.sha256(bundle).hexdigest()
        (self.prefix / "bundle.tar.gz").write_bytes(bundle)
        (self.prefix / "bundle.tar.gz.sha256").write_text(f"{digest}  bundle.tar.gz\n")
        return digest

    def boot(self, *arguments: str, node_type: str = "HeadNode") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                "bash",
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
                "TRAINING_BUNDLES": str(self.root / "opt"),
            },
            capture_output=True,
            text=True,
            check=False,
        )

    def environment(self, partition: str) -> Path:
        return self.root / "etc" / "partitions" / f"{partition}.env"

    def files(self) -> dict[str, int]:
        """Every file with the time of its last change."""
        return {str(p): p.stat().st_mtime_ns for p in self.root.rglob("*") if p.is_file()}


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
    env = str(node.environment("gpu"))
    assert {k: v for k, v in after.items() if k != env} == {k: v for k, v in before.items() if k != env}


def test_a_changed_script_replaces_the_old_ones_at_once(node: Node) -> None:
    node.publish()
    node.boot()
    (node.shared / "training" / "job.slurm").write_text("changed by hand\n")
    digest = node.publish("m6i")
    done = node.boot(digest)
    assert done.returncode == 0, done.stderr
    assert (node.shared / "training" / "job.slurm").read_text().startswith("#!/usr/bin/env bash")
    assert "FAMILY='m6i'" in node.environment("cpu").read_text()


def test_a_damaged_bundle_is_refused_and_nothing_is_installed(node: Node) -> None:
    node.publish()
    (node.prefix / "bundle.tar.gz").write_bytes(b"half of it")
    done = node.boot()
    assert done.returncode == 1
    assert "damaged" in done.stderr.splitlines()[-1]
    assert not (node.root / "etc").exists()
    assert list((node.root / "opt").iterdir()) == []


def test_another_bundle_than_the_update_is_about_is_refused(node: Node) -> None:
    node.publish()
    done = node.boot("0" * 64)
    assert done.returncode == 1
    assert "another bundle" in done.stderr.splitlines()[-1]


def test_a_missing_object_is_tried_again_and_then_named(node: Node) -> None:
    done = node.boot()
    assert done.returncode == 1
    assert "attempt 5 of 5" in done.stderr
    assert "gave up on s3://bucket/bootstrap/training/bundle.tar.gz" in done.stderr.splitlines()[-1]


def test_an_unknown_node_type_is_refused(node: Node) -> None:
    node.publish()
    done = node.boot(node_type="Toaster")
    assert done.returncode == 1
    assert "unknown node type 'Toaster'" in done.stderr


def test_every_node_has_the_seeds_paths_of_the_shared_folders(node: Node) -> None:
    node.publish("trn1")
    assert node.boot(node_type="ComputeFleet").returncode == 0
    links = {str(p.relative_to(node.root / "slash")): str(p.readlink()) for p in node.root.glob("slash/*")}
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
    # A real node has a Python that can make environments, so step 15 installs none.
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
    assert Path(path) == node.root / "opt" / digest / "bootstrap" / "metrics" / program[0]
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
    assert node.boot(digest).returncode == 0
    assert digest in _what_runs(units)[2]
    assert sorted(path.name for path in units.iterdir()) == [f"{METRICS}.service", f"{METRICS}.timer"]


@pytest.mark.parametrize("fault", ["no systemd", "no queue", "no partition"])
def test_a_node_that_cannot_publish_starts_all_the_same_and_says_so(node: Node, fault: str) -> None:
    _real_node(
        node,
        queue={"no queue": "", "no partition": "elsewhere"}.get(fault, "gpu"),
        systemctl="echo 'no systemd here' >&2; exit 1" if fault == "no systemd" else "true",
    )
    node.publish()
    done = node.boot(node_type="ComputeFleet")
    assert done.returncode == 0, done.stderr
    assert "this node publishes no metrics" in done.stderr
    assert {
        "no systemd": "no systemd here",
        "no queue": "cfn_scheduler_queue_name: is not in cfnconfig",
        "no partition": "elsewhere.env",
    }[fault] in done.stderr


def test_every_step_states_its_budget_and_the_head_node_has_time_for_all(tmp_path: Path) -> None:
    base = load_base()
    assert base.compute_node.boot_s + bootstrap_budget_s() <= base.head_node.bootstrap_timeout_s
    copy = shutil.copytree(ASSETS, tmp_path / "assets")
    step = copy / "bootstrap" / "steps" / "99-forget-the-budget.sh"
    step.write_text("#!/usr/bin/env bash\n")
    with pytest.raises(ConfigurationError, match=r"99-forget-the-budget\.sh: its header states no budget"):
        bootstrap_budget_s(copy)
