"""The rendered ParallelCluster config: golden files, and the rules it keeps."""

from __future__ import annotations

import os
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from training_cluster.cluster_config import ResourceIds, render_cluster_config
from training_cluster.families import family_names
from training_cluster.settings import Settings

GOLDEN = Path(__file__).parent / "golden" / "cluster_config"


def ids(**changes: Any) -> ResourceIds:
    values: dict[str, Any] = {
        "region": "us-east-1",
        "partition": "aws",
        "public_subnet_id": "subnet-0aaaaaaaaaaaaaaaa",
        "private_subnet_id": "subnet-0bbbbbbbbbbbbbbbb",
        "node_security_group_id": "sg-0cccccccccccccccc",
        "key_name": "training-key",
        "file_system_id": "fs-0dddddddddddddddd",
        "bucket_name": "bucket",
        "bundle_sha256": "e" * 64,
        "placement_group_name": "group",
    }
    return ResourceIds(**(values | changes))


def render(**flags: str) -> dict[str, Any]:
    return render_cluster_config(settings=Settings.from_context(flags), ids=ids())


@pytest.mark.parametrize("family", family_names())
def test_the_config_of_a_family_is_the_golden_one(family: str) -> None:
    text = yaml.safe_dump(render(family=family), sort_keys=False)
    path = GOLDEN / f"{family}.yaml"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text(), "read the difference, then: UPDATE_GOLDEN=1 pytest tests/unit"


def _constant(config: dict[str, Any]) -> dict[str, Any]:
    """What ParallelCluster 3.16.1 never lets change in a cluster's life (update policy UNSUPPORTED)."""
    head = config["HeadNode"]
    return {
        "Region": config["Region"],
        "Image.Os": config["Image"]["Os"],
        "HeadNode.InstanceType": head["InstanceType"],
        "HeadNode.Networking.SubnetId": head["Networking"]["SubnetId"],
        "HeadNode.Ssh.KeyName": head["Ssh"]["KeyName"],
        "HeadNode.LocalStorage": head["LocalStorage"],
        "HeadNode.CustomActions.OnNodeConfigured": head["CustomActions"]["OnNodeConfigured"],
        "DevSettings.Timeouts.HeadNodeBootstrapTimeout": config["DevSettings"]["Timeouts"][
            "HeadNodeBootstrapTimeout"
        ],
        "SharedStorage": config["SharedStorage"],
    }


@pytest.mark.parametrize("family", family_names())
def test_nothing_that_can_never_change_depends_on_a_flag_that_may(family: str) -> None:
    variants = [
        render(family=family),
        render(family=family, nodes="64"),
        render(family=family, min_nodes="1"),
        render_cluster_config(
            settings=Settings.from_context({"family": family}), ids=ids(bundle_sha256="f" * 64)
        ),
    ]
    for one, other in combinations(variants, 2):
        assert _constant(one) == _constant(other)
        assert one != other, "a pair that is equal shows nothing"


def test_a_changed_script_is_a_live_change_of_the_head_node() -> None:
    update = render()["HeadNode"]["CustomActions"]["OnNodeUpdated"]
    assert update["Args"][-1] == "e" * 64


def test_efa_families_get_efa_a_placement_group_and_one_private_subnet() -> None:
    queue = render(family="p4d")["Scheduling"]["SlurmQueues"][0]
    assert queue["ComputeResources"][0]["Efa"] == {"Enabled": True}
    assert queue["Networking"]["PlacementGroup"] == {"Enabled": True, "Name": "group"}
    assert queue["Networking"]["SubnetIds"] == ["subnet-0bbbbbbbbbbbbbbbb"]


def test_families_without_efa_get_neither() -> None:
    queue = render(family="m6i")["Scheduling"]["SlurmQueues"][0]
    assert queue["ComputeResources"][0]["Efa"] == {"Enabled": False}
    assert "PlacementGroup" not in queue["Networking"]


def test_nodes_cost_nothing_until_a_job_wants_them() -> None:
    resource = render(nodes="5")["Scheduling"]["SlurmQueues"][0]["ComputeResources"][0]
    assert (resource["MinCount"], resource["MaxCount"]) == (0, 5)


def test_all_nodes_use_our_security_group_and_imdsv2() -> None:
    config = render()
    nodes = [config["HeadNode"], *config["Scheduling"]["SlurmQueues"]]
    assert all(node["Networking"]["SecurityGroups"] == ["sg-0cccccccccccccccc"] for node in nodes)
    assert config["Imds"] == {"ImdsSupport": "v2.0"}
    assert "AllowedIps" not in config["HeadNode"]["Ssh"]


def test_every_root_volume_is_encrypted() -> None:
    config = render()
    queues = [queue["ComputeSettings"] for queue in config["Scheduling"]["SlurmQueues"]]
    for node in [config["HeadNode"], *queues]:
        assert node["LocalStorage"]["RootVolume"]["Encrypted"] is True
