"""Variables of jobs about their nodes: rendered from the catalog and the flags, and installed by step 60."""

import subprocess
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.start_step_node import Node
from training_cluster.cluster.job_environment import render_job_environments
from training_cluster.rules.context import read_settings


def variables(partition: str, **flags: str) -> dict[str, str]:
    text = render_job_environments(read_settings(flags))[partition]
    pairs = [line.removeprefix("export ").split("=", 1) for line in text.splitlines() if line[0] != "#"]
    return {name: value.strip("'") for name, value in pairs}


def test_a_job_knows_what_its_nodes_network_and_gpus_should_reach() -> None:
    known = variables("gpu", family="p4d")
    assert known["COMPUTE_CAPABILITY"] == "8.0"
    assert known["NETWORK_GBPS"] == "400.0"
    assert known["NCCL_FLOORS"] == "2:1:41"
    assert (known["CAPACITY"], known["PLACEMENT_GROUP"]) == ("ondemand", "yes")


def test_a_job_knows_how_many_efa_interfaces_its_nodes_have() -> None:
    assert variables("gpu", family="p5")["EFA_INTERFACES"] == "32"


def test_a_family_without_gpus_or_floors_has_empty_values() -> None:
    known = variables("cpu", family="m6i")
    assert (known["COMPUTE_CAPABILITY"], known["NCCL_FLOORS"]) == ("", "")
    assert known["PLACEMENT_GROUP"] == "no"


def test_a_job_knows_how_its_nodes_were_bought() -> None:
    assert variables("gpu", capacity="spot")["CAPACITY"] == "spot"
    reserved = variables("gpu", capacity="capacity-block:cr-0123456789abcdef0")
    assert (reserved["CAPACITY"], reserved["PLACEMENT_GROUP"]) == ("capacity-block", "no")
    assert variables("gpu", placement_group="mine")["PLACEMENT_GROUP"] == "yes"
    beside = variables("cpu", family="p4d", capacity="spot", cpu_queue="on")
    assert (beside["CAPACITY"], beside["PLACEMENT_GROUP"]) == ("ondemand", "no")


def test_jobs_of_a_queue_with_several_types_know_what_holds_for_all(tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text("mixed: {instance_types: [g6.12xlarge, g4dn.12xlarge]}")
    known = variables("mixed", queues=str(file))
    assert (known["FAMILY"], known["INSTANCE_TYPE"]) == ("g6 g4dn", "g6.12xlarge g4dn.12xlarge")
    assert (known["ACCELERATORS_PER_NODE"], known["RANKS_PER_NODE"]) == ("4", "4")
    assert known["MIXED_PRECISION"] == "fp16"
    assert (known["COMPUTE_CAPABILITY"], known["ACCELERATOR_PEAK_TFLOPS"]) == ("", "")
    assert "NCCL_SOCKET_IFNAME" not in known


def test_nodes_that_differ_in_efa_are_not_checked_for_it(tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text(
        "prep: {compute_resources: [{name: a, family: m6i}, {name: b, instance_types: c5n.18xlarge}]}"
    )
    assert variables("prep", queues=str(file))["EFA_INTERFACES"] == "0"


def test_nodes_with_different_numbers_of_efa_interfaces_fork_safely(tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text("train: {compute_resources: [{name: a, family: p5}, {name: b, family: p5en}]}")
    known = variables("train", queues=str(file))
    assert known["EFA_INTERFACES"] == "0", "the interfaces of a node are not known"
    assert known["FI_EFA_USE_HUGE_PAGE"] == "0"


@pytest.mark.parametrize(
    ("flags", "mbps"),
    [
        ({}, "292"),
        ({"fsx_gib": "2400", "fsx_mbps_per_tib": "1000"}, "2343"),
        ({"fsx_type": "scratch2"}, "234"),
        ({"fsx_id": "fs-0123456789abcdef0"}, ""),
    ],
)
def test_a_job_knows_the_throughput_of_a_new_shared_file_system(flags: dict[str, str], mbps: str) -> None:
    assert variables("gpu", **flags)["SHARED_MBPS"] == mbps
    assert variables("cpu", family="p4d", cpu_queue="on", **flags)["SHARED_MBPS"] == mbps


@pytest.mark.parametrize(
    ("family", "partition", "value"), [("p3dn", "gpu", "0"), ("p5", "gpu", "0"), ("m6i", "cpu", None)]
)
def test_data_workers_can_be_forked_where_there_is_efa(
    family: str, partition: str, value: str | None
) -> None:
    assert variables(partition, family=family).get("FI_EFA_USE_HUGE_PAGE") == value


def bucket(node: Node) -> str:
    (node.bundle / "partitions").mkdir(exist_ok=True)
    (node.bundle / "partitions" / "gpu.env").write_text("export FAMILY='p4d'\n")
    node.does("60")
    file = node.etc / "partitions" / "gpu.env"
    script = f"set -eu; source {file}; echo $FAMILY ${{TRAINING_BUCKET-unset}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_job_knows_the_bucket_that_its_nodes_scripts_came_from(tmp_path: Path) -> None:
    node = Node(tmp_path)
    assert bucket(node) == "p4d"
    (node.etc / "bootstrap-arguments").write_text("s3://team-data-1/bootstrap/training\n")
    assert bucket(node) == "p4d team-data-1"
    assert bucket(node) == "p4d team-data-1", "a second run adds nothing"
