"""Pure parts of the local Slurm: partitions from a cluster config, slurm.conf from partitions."""

import socket
from pathlib import Path
from typing import Any

import pytest

from rehearsal.local_slurm import Layout, NodeShape, SlurmError, parse_partitions
from rehearsal.local_slurm.conf import render_slurm_conf
from rehearsal.local_slurm.jobs import parse_job
from rehearsal.local_slurm.ports import find_ports

GOLDEN = Path(__file__).parent / "golden"
SHAPES = {
    "p4d.24xlarge": NodeShape(vcpus=96, memory_mib=1_179_648),
    "m6i.4xlarge": NodeShape(vcpus=16, memory_mib=65_536),
    "m6i.8xlarge": NodeShape(vcpus=32, memory_mib=131_072),
}


def cluster_config(**p4d: Any) -> dict[str, Any]:
    gpu = {"Name": "p4d", "InstanceType": "p4d.24xlarge", "MinCount": 0, "MaxCount": 4} | p4d
    instances = [{"InstanceType": "m6i.8xlarge"}, {"InstanceType": "m6i.4xlarge"}]
    cpu = {"Name": "m6i", "Instances": instances, "MinCount": 2, "MaxCount": 3}
    queues = [{"Name": "train", "ComputeResources": [gpu]}, {"Name": "cpu", "ComputeResources": [cpu]}]
    return {"Region": "us-east-1", "Scheduling": {"Scheduler": "slurm", "SlurmQueues": queues}}


def layout(root: str = "/srv/rehearsal/slurm", **changes: Any) -> Layout:
    known: dict[str, Any] = {"user": "alice", "host": "laptop", "controller_port": 25_000}
    return Layout(root=Path(root), **(known | {"node_ports": ports(cluster_config())} | changes))


def ports(config: dict[str, Any], first: int = 25_001) -> dict[str, int]:
    partitions = parse_partitions(cluster_config=config, shapes=SHAPES)
    names = [name for partition in partitions for name in partition.node_names]
    return {name: first + i for i, name in enumerate(names)}


def test_two_queues_render_the_golden_conf() -> None:
    partitions = parse_partitions(cluster_config=cluster_config(), shapes=SHAPES)
    text = render_slurm_conf(partitions=partitions, layout=layout(max_node_processes=3))
    assert text == (GOLDEN / "two_queues.conf").read_text(encoding="utf-8")


def test_added_nodes_have_their_own_ports() -> None:
    config = cluster_config(MaxCount=6)
    changed = ports(cluster_config()) | {"train-dy-p4d-5": 27_000, "train-dy-p4d-6": 27_001}
    partitions = parse_partitions(cluster_config=config, shapes=SHAPES)
    text = render_slurm_conf(partitions=partitions, layout=layout(node_ports=changed))
    assert "NodeName=train-dy-p4d-[1-4] NodeAddr=127.0.0.1 Port=[25001-25004] " in text
    assert "NodeName=train-dy-p4d-[5-6] NodeAddr=127.0.0.1 Port=[27000-27001] " in text
    assert "PartitionName=train Nodes=train-dy-p4d-[1-6] " in text


def test_several_types_give_their_common_shape() -> None:
    _, cpu = parse_partitions(cluster_config=cluster_config(), shapes=SHAPES)
    assert cpu.node_sets[0].shape == SHAPES["m6i.4xlarge"]


def test_counts_default_to_parallelclusters() -> None:
    config = cluster_config()
    resource = config["Scheduling"]["SlurmQueues"][0]["ComputeResources"][0]
    del resource["MinCount"], resource["MaxCount"]
    train, _ = parse_partitions(cluster_config=config, shapes=SHAPES)
    assert (train.node_sets[0].static, train.node_sets[0].dynamic) == (0, 10)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"Name": ""}, r"SlurmQueues\[0\]\.ComputeResources\[0\]\.Name: a name is expected"),
        (
            {"InstanceType": "p9.huge"},
            r"no shape given for instance type 'p9.huge'. Shapes given: m6i.4xlarge",
        ),
        ({"MinCount": 5}, r"ComputeResources\[0\]: MinCount 5 is above MaxCount 4"),
        ({"MaxCount": "four"}, r"MaxCount: a whole number, 0 or more, is expected, not 'four'"),
        ({"MaxCount": 0}, r"SlurmQueues\[0\]: queue 'train' has no node"),
    ],
)
def test_wrong_config_is_refused_with_its_position(change: dict[str, Any], said: str) -> None:
    with pytest.raises(SlurmError, match=said):
        parse_partitions(cluster_config=cluster_config(**change), shapes=SHAPES)


def test_too_long_socket_path_is_refused() -> None:
    long = f"train-dy-{'x' * 45}-1"
    with pytest.raises(SlurmError, match=r"bytes too long for Linux, which allows 107:\n.*\nGive the queue"):
        layout(alias=Path("/proc/4194304/cwd")).check_socket_paths([long])


@pytest.mark.parametrize(("root", "said"), [("slurm", "is relative"), ("/srv/my files", "contains a space")])
def test_unusable_folder_is_refused(root: str, said: str) -> None:
    with pytest.raises(SlurmError, match=said):
        layout(root)


def test_taken_port_is_never_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as listener:
        first = find_ports(1)
        listener.bind(("127.0.0.1", first))
        listener.listen()
        monkeypatch.setattr("rehearsal.local_slurm.ports.PORTS", range(first, first + 1))
        with pytest.raises(SlurmError, match=r"No 1 consecutive free TCP ports .*ss -ltnp"):
            find_ports(1)


def test_a_job_is_read_from_scontrols_line() -> None:
    line = (
        "JobId=25000 JobName=train UserId=root(0) JobState=FAILED Reason=NonZeroExitCode Dependency=(null) "
        "Requeue=1 ExitCode=3:0 ReqNodeList=(null) NodeList=train-dy-p4d-[1-2] StdOut=/srv/jobs/train.log"
    )
    job = parse_job(line)
    assert (job.job_id, job.state, job.exit_code) == (25_000, "FAILED", 3)
    assert (job.nodes, job.output) == ("train-dy-p4d-[1-2]", Path("/srv/jobs/train.log"))
    assert job.has_ended
    assert not job.is_completed
