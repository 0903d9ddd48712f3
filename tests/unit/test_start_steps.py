"""The start steps, each run as run-steps.sh runs it, with a node's programs stubbed."""

from __future__ import annotations

import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from training_cluster.bundle import build_bundle
from training_cluster.settings import Settings
from training_cluster.steps import ASSETS

TMPFILES = Path("/usr/bin/systemd-tmpfiles")
STEPS = ASSETS / "bootstrap" / "steps"
ENROOT_EXAMPLE = """\
#ENROOT_LIBRARY_PATH        /usr/lib/enroot
ENROOT_RUNTIME_PATH         /run/enroot/runtime/user-$(id -u)
ENROOT_DATA_PATH            /run/enroot/data/user-$(id -u)
ENROOT_CONFIG_PATH          /var/enroot/config/user-$(id -u)
ENROOT_CACHE_PATH           /var/enroot/cache/group-$(id -g)
#ENROOT_TEMP_PATH           ${TMPDIR:-/tmp}

ENROOT_MOUNT_HOME          no
"""
PYXIS_EXAMPLE = """\
# THIS IS AN EXAMPLE OF pyxis.conf file
required /usr/local/lib/slurm/spank_pyxis.so runtime_path=/run/pyxis
"""


class Node:
    """A node's disk, and stubs of its programs, which note their arguments."""

    def __init__(self, root: Path) -> None:
        self.slash, self.etc, self.programs = root / "slash", root / "etc", root / "bin"
        self.bundle, self._calls = root / "bundles" / ("a" * 64), root / "calls"
        self.programs.mkdir()
        self.bundle.mkdir(parents=True)
        (self.bundle / "bootstrap").symlink_to(ASSETS / "bootstrap")
        (self.etc / "partitions").mkdir(parents=True)
        for program in ("systemd-tmpfiles", "scontrol"):
            self.stub(program)

    def stub(self, name: str, script: str = "", *, at: Path | None = None) -> None:
        program = (at or self.programs) / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f'#!/bin/sh\necho "{name} $*" >>"{self._calls}"\n{script}\n')
        program.chmod(0o755)

    def calls(self) -> list[str]:
        """What was called since the last time that this was asked."""
        lines = self._calls.read_text().splitlines() if self._calls.exists() else []
        self._calls.unlink(missing_ok=True)
        return lines

    def run(
        self, step: str, *, node_type: str = "ComputeFleet", partition: str = "", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": f"{self.programs}:{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin",
            "NODE_TYPE": node_type,
            "PARTITION": partition,
            "BUNDLE": str(self.bundle),
            "TRAINING_ROOT": str(self.slash),
            "TRAINING_ETC": str(self.etc),
            "TRAINING_SHARED": str(self.slash / "fsx"),
            "TRAINING_EFS": str(self.slash / "efs"),
        }
        (path,) = STEPS.glob(f"{step}-*.sh")
        return subprocess.run(
            ["bash", str(path)], env=environment | variables, capture_output=True, text=True
        )

    def does(self, step: str, *, node_type: str = "ComputeFleet", partition: str = "") -> str:
        """Run a step that has to work; what it said."""
        done = self.run(step, node_type=node_type, partition=partition)
        assert done.returncode == 0, done
        return done.stderr

    def text(self, path: str) -> str:
        return (self.slash / path).read_text()

    def write(self, path: str, text: str) -> Path:
        file = self.slash / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def files(self) -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in self.slash.rglob("*") if path.is_file()}


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_users_may_lock_memory_and_open_as_many_files_as_slurmd(node: Node) -> None:
    node.does("62")
    lines = node.text("etc/security/limits.d/99-training-cluster.conf").splitlines()[1:]
    assert lines == [
        "* - memlock unlimited",
        "* - nofile 131072",
        "* soft stack 65536",
        "* hard stack unlimited",
    ]


def test_a_xeon_node_gives_large_pages_to_all(node: Node) -> None:
    node.does("66")
    file = node.slash / "etc/tmpfiles.d/training-cluster-memory.conf"
    assert file.read_text().splitlines()[1:] == [
        "w /sys/kernel/mm/transparent_hugepage/enabled - - - - always",
        "w /sys/kernel/mm/transparent_hugepage/defrag - - - - defer+madvise",
    ]
    assert node.calls() == [f"systemd-tmpfiles --create {file}"]


@pytest.fixture
def containers(node: Node) -> Iterator[Node]:
    """A node whose image has Enroot and Pyxis, with local disks."""
    examples = "opt/parallelcluster/examples"
    node.write(f"{examples}/enroot/enroot.conf", ENROOT_EXAMPLE)
    node.write(f"{examples}/pyxis/pyxis.conf", PYXIS_EXAMPLE)
    node.write("usr/bin/enroot", "")
    node.write("usr/local/lib/slurm/spank_pyxis.so", "")
    node.write("usr/share/enroot/hooks.d/50-slurm-pytorch.sh", "")
    (node.etc / "partitions" / "gpu.env").write_text("export SCRATCH='/scratch'\n")
    (node.etc / "partitions" / "cpu.env").write_text("export SCRATCH=''\n")
    umask = os.umask(0o077)  # as strict as a node's may be
    yield node
    os.umask(umask)


@pytest.mark.skipif(not TMPFILES.exists(), reason="this machine has no systemd")
@pytest.mark.parametrize("step", ["66", "72"])
def test_systemd_understands_what_it_is_told(containers: Node, step: str) -> None:
    containers.does(step)
    (file,) = (containers.slash / "etc/tmpfiles.d").iterdir()
    checked = subprocess.run(
        [TMPFILES, "--create", "--prefix=/nowhere", file], capture_output=True, text=True
    )
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize(
    ("partition", "mounted", "large"),
    [("gpu", "", "/scratch/enroot"), ("gpu", "exit 32", "/var/enroot"), ("cpu", "", "/var/enroot")],
    ids=["local disks", "not mounted", "none"],
)
def test_containers_are_kept_on_the_local_disks_where_there_are_some(
    containers: Node, partition: str, mounted: str, large: str
) -> None:
    containers.stub("mountpoint", mounted)
    containers.does("72", partition=partition)
    asked = [f"mountpoint --quiet {containers.slash}/scratch"] if partition == "gpu" else []
    tmpfiles = containers.slash / "etc/tmpfiles.d/training-cluster-containers.conf"
    assert containers.calls() == [*asked, f"systemd-tmpfiles --create {tmpfiles}"]
    assert containers.text("etc/enroot/enroot.conf").splitlines()[1:] == [
        "ENROOT_RUNTIME_PATH /run/enroot/runtime/user-$(id -u)",
        f"ENROOT_DATA_PATH {large}/data/user-$(id -u)",
        f"ENROOT_CACHE_PATH {large}/cache/user-$(id -u)",
        f"ENROOT_TEMP_PATH {large}/tmp",
        "ENROOT_CONFIG_PATH /var/enroot/config/user-$(id -u)",
        "ENROOT_MOUNT_HOME          no",
    ]
    for folder in (large, f"{large}/data", f"{large}/cache", f"{large}/tmp", "/var/enroot/config"):
        assert (containers.slash / folder.lstrip("/")).stat().st_mode & 0o7777 == 0o1777, folder
    assert (containers.slash / "etc/enroot/enroot.conf").stat().st_mode & 0o777 == 0o644
    hook = containers.slash / "etc/enroot/hooks.d/50-slurm-pytorch.sh"
    assert hook.readlink() == Path("/usr/share/enroot/hooks.d/50-slurm-pytorch.sh")
    assert not (containers.slash / "opt/slurm/etc").exists()


def test_the_head_node_switches_on_slurms_plug_in_once(containers: Node) -> None:
    containers.does("72", node_type="HeadNode")
    etc = containers.slash / "opt/slurm/etc"
    assert (etc / "plugstack.conf.d").stat().st_mode & 0o777 == 0o755
    assert (etc / "plugstack.conf").read_text() == "include /opt/slurm/etc/plugstack.conf.d/*\n"
    assert (etc / "plugstack.conf.d/pyxis.conf").read_text() == PYXIS_EXAMPLE.splitlines()[1] + "\n"
    assert containers.calls()[-1] == "scontrol reconfigure"
    before = containers.files()
    containers.does("72", node_type="HeadNode")
    assert "scontrol reconfigure" not in containers.calls()
    assert containers.files() == before


def test_an_image_without_parallelclusters_examples_has_containers_too(containers: Node) -> None:
    shutil.rmtree(containers.slash / "opt/parallelcluster/examples")
    containers.does("72", node_type="HeadNode")
    assert (
        containers.text("opt/slurm/etc/plugstack.conf.d/pyxis.conf") == PYXIS_EXAMPLE.splitlines()[1] + "\n"
    )
    assert (
        containers.text("etc/enroot/enroot.conf").splitlines()[2].startswith("ENROOT_DATA_PATH /var/enroot")
    )


def test_somebodys_own_plug_ins_stay(containers: Node) -> None:
    file = containers.write("opt/slurm/etc/plugstack.conf", "optional mine.so")
    containers.does("72", node_type="HeadNode")
    assert file.read_text() == "optional mine.so\ninclude /opt/slurm/etc/plugstack.conf.d/*\n"


def test_an_image_without_enroot_or_pyxis_is_left_as_it_is_and_said(containers: Node) -> None:
    (containers.slash / "usr/local/lib/slurm/spank_pyxis.so").unlink()
    done = containers.run("72", node_type="HeadNode")
    assert done.returncode == 1
    assert done.stderr.endswith("spank_pyxis.so): srun has no --container-image\n")
    assert not (containers.slash / "opt/slurm/etc").exists()
    (containers.slash / "usr/bin/enroot").unlink()
    assert "this image has no Enroot" in containers.does("72")


AGENT = "opt/aws/amazon-cloudwatch-agent"


@pytest.fixture
def logging(node: Node) -> Node:
    """A node whose CloudWatch agent runs, as ParallelCluster configures it."""
    dna = {"cluster": {"cw_logging_enabled": "true", "log_group_name": "/aws/parallelcluster/training-2026"}}
    node.write("etc/chef/dna.json", json.dumps(dna))
    appended = node.slash / AGENT / "etc/amazon-cloudwatch-agent.d"
    appended.mkdir(parents=True)
    node.stub(
        "amazon-cloudwatch-agent-ctl",
        f'cp "${{6#file:}}" "{appended}/file_$(basename "$6")"',
        at=node.slash / AGENT / "bin",
    )
    return node


def test_our_logs_go_to_the_clusters_log_group(logging: Node) -> None:
    logging.does("80")
    config = logging.slash / AGENT / "etc/training-cluster.json"
    assert logging.calls() == [
        f"amazon-cloudwatch-agent-ctl -a append-config -m ec2 -c file:{config} -s",
    ]
    host = socket.gethostname()
    assert json.loads(config.read_text())["logs"]["logs_collected"]["files"]["collect_list"] == [
        {
            "file_path": f"/var/log/training-cluster/{name}.log",
            "log_group_name": "/aws/parallelcluster/training-2026",
            "log_stream_name": f"{host}.{{instance_id}}.training-cluster-{name}",
        }
        for name in ("bootstrap", "health")
    ]


def test_the_agent_is_not_restarted_for_the_config_that_it_has(logging: Node) -> None:
    logging.does("80")
    logging.calls()
    before = logging.files()
    logging.does("80")
    assert logging.calls() == []
    assert logging.files() == before


def test_an_agent_that_refuses_is_asked_again_at_the_next_start(logging: Node) -> None:
    logging.stub("amazon-cloudwatch-agent-ctl", "exit 1", at=logging.slash / AGENT / "bin")
    assert logging.run("80").returncode == 1
    logging.calls()
    assert logging.run("80").returncode == 1
    assert len(logging.calls()) == 1


def test_a_cluster_without_cloudwatch_logs_keeps_ours_on_the_node(logging: Node) -> None:
    dna = {"cluster": {"cw_logging_enabled": "false", "log_group_name": "NONE"}}
    logging.write("etc/chef/dna.json", json.dumps(dna))
    assert "ours stay in /var/log/training-cluster" in logging.does("80")
    assert logging.calls() == []


def test_logs_are_rotated_also_where_they_are_not_shipped(logging: Node) -> None:
    logging.write("etc/chef/dna.json", '{"cluster": {"cw_logging_enabled": "false"}}')
    logging.does("80")
    assert "/var/log/training-cluster/*.log {" in logging.text("etc/logrotate.d/training-cluster")


def test_the_prolog_comes_in_one_rename_with_the_places_of_this_cluster(node: Node) -> None:
    node.does("90", node_type="HeadNode")
    folder = node.slash / "opt/slurm/etc/scripts/prolog.d"
    (prolog,) = folder.iterdir()
    assert prolog.name == "10-training-cluster"
    assert prolog.stat().st_mode & 0o777 == 0o755
    shebang, *lines = prolog.read_text().splitlines()
    assert shebang == "#!/usr/bin/env bash"
    assert lines[:3] == [
        f"export TRAINING_ROOT='{node.slash}'",
        f"export TRAINING_ETC='{node.etc}'",
        f"export TRAINING_BUNDLES='{node.bundle.parent}'",
    ]
    script = (ASSETS / "bootstrap" / "prolog.sh").read_text()
    assert prolog.read_text().endswith(script.removeprefix("#!/usr/bin/env bash\n"))
    before = node.files()
    node.does("90", node_type="HeadNode")
    assert node.files() == before


def test_a_real_clusters_prolog_has_quotes_around_nothing_but_paths(node: Node, tmp_path: Path) -> None:
    """Without TRAINING_ROOT, as on a node, no line of it stands in the prolog, whose defaults then count."""
    script = (ASSETS / "bootstrap" / "steps" / "90-install-prolog.sh").read_text()
    moved = script.replace("$TRAINING_ROOT/opt/slurm", f"{tmp_path}/opt/slurm")
    done = subprocess.run(
        ["bash", "-c", moved],
        env={"PATH": os.environ["PATH"], "BUNDLE": str(node.bundle), "TRAINING_ETC": "/etc/training-cluster"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done
    prolog = tmp_path / "opt/slurm/etc/scripts/prolog.d/10-training-cluster"
    assert "export TRAINING_ROOT='" not in prolog.read_text()
    assert subprocess.run(["bash", "-n", str(prolog)]).returncode == 0


def test_a_link_in_a_shared_folders_place_is_made_before_the_folders(node: Node, tmp_path: Path) -> None:
    """With home=efs /efs is a link into /home; no TRAINING_ROOT, since a link's target has none before it."""
    efs, home = tmp_path / "efs", tmp_path / "home" / "efs"
    (node.bundle / "links").write_text(f"{efs} {home}\n{tmp_path}/neuron_shared {efs}\n")
    (node.bundle / "training" / "gpt2").mkdir(parents=True)
    for step in ("65", "70"):
        done = node.run(
            step,
            node_type="HeadNode",
            TRAINING_ROOT="",
            TRAINING_EFS=str(efs),
            TRAINING_SHARED=str(tmp_path / "fsx"),
        )
        assert (done.returncode, done.stderr) == (0, ""), done
    assert efs.readlink() == home
    assert home.stat().st_mode & 0o7777 == 0o1777
    assert (tmp_path / "neuron_shared").resolve() == home
    assert (tmp_path / "fsx" / "checkpoints" / "gpt2").is_dir()


def test_every_file_that_a_step_reads_ships_in_the_bundle() -> None:
    """Steps, checks and prolog find each other by their places in the bundle."""
    with tarfile.open(fileobj=io.BytesIO(build_bundle(settings=Settings.from_context({})))) as archive:
        names = set(archive.getnames())
    assert {
        "bootstrap/lib/put.sh",
        "bootstrap/prolog.sh",
        "bootstrap/health/check-node.sh",
        "bootstrap/health/verdict.sh",
        "bootstrap/health/checks/10-gpus.sh",
    } <= names
