"""`trainctl verify --nodes` on what keeps several people apart on a node."""

import pytest

from ops.verify.people import CHECKS
from ops.verify.scene import open_scene
from tests.unit.ops.jobs_head_node import PlayedCluster

OWN = "/dev/root[/var/lib/training-cluster/jobs/7/.7/_tmp], GPUs that it opens: "
QUEUE = {"Name": "open", "ComputeResources": [{"InstanceType": "p5.48xlarge"}]}


@pytest.mark.parametrize(
    ("exclusive", "answer", "verdict"),
    [
        ("YES", "", "could not look"),
        ("NO", f"{OWN}1\n", "held"),
        ("NO", f"{OWN}8\n", "differs"),
        ("NO", "/dev/root, GPUs that it opens: 1\n", "differs"),
    ],
)
def test_a_node_that_keeps_nobody_apart_is_seen(
    cluster: PlayedCluster, monkeypatch: pytest.MonkeyPatch, *, exclusive: str, answer: str, verdict: str
) -> None:
    config = {"Scheduling": {"SlurmQueues": [QUEUE | {"CustomSlurmSettings": {"ExclusiveUser": exclusive}}]}}
    monkeypatch.setattr("ops.verify.scene.read_cluster_config", lambda _name, _client: config)
    cluster.says("srun", answer)
    scene = open_scene("training", cluster.client, lambda _: None, nodes=1)
    assert [check.run(scene).verdict for check in CHECKS] == [verdict]
