"""The start steps, each run as run-steps.sh runs it, with a node's programs stubbed."""

import io
import json
import os
import socket
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.start_step_node import Node
from training_cluster.cluster.bundle import build_bundle
from training_cluster.paths import ASSETS
from training_cluster.rules.context import read_settings


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
    assert "the logs stay in /var/log/training-cluster" in logging.does("80")
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
    """/efs is a link into /home with home=efs; there is no TRAINING_ROOT, which no link's target has."""
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
    with tarfile.open(fileobj=io.BytesIO(build_bundle(settings=read_settings({})))) as archive:
        names = set(archive.getnames())
    assert {
        "bootstrap/lib/put.sh",
        "bootstrap/prolog.sh",
        "bootstrap/epilog.sh",
        "bootstrap/health/judge-node.sh",
        "bootstrap/health/check-node.sh",
        "bootstrap/health/gpu_cuda.py",
        "bootstrap/health/verdict.sh",
        "bootstrap/health/drain_limit.sh",
        "bootstrap/health/checks/10-gpus.sh",
    } <= names
