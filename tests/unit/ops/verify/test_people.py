"""`trainctl verify --nodes` on what keeps several people apart on a node."""

import pytest

from ops.verify.people import CHECKS
from ops.verify.scene import open_scene
from tests.unit.ops.jobs_head_node import PlayedCluster

MODULE = "/usr/lib/x86_64-linux-gnu/security/pam_slurm_adopt.so\n"
OWN = "/dev/root[/var/lib/training-cluster/jobs/7/.7/_tmp], GPUs that it opens: "
QUEUE = {"Name": "open", "ComputeResources": [{"InstanceType": "p5.48xlarge"}]}


@pytest.mark.parametrize(
    ("flags", "shared", "answer", "verdicts"),
    [
        ("Alloc,DeferBatch", "YES", "", ["could not look", "could not look"]),
        ("Alloc,DeferBatch,Contain", "YES", MODULE, ["held", "could not look"]),
        ("Alloc,DeferBatch,Contain", "YES", "", ["differs", "could not look"]),
        ("Alloc,DeferBatch,Contain", "NO", f"{OWN}1\n", ["differs", "held"]),
        ("Alloc,DeferBatch,Contain", "NO", f"{OWN}8\n", ["differs", "differs"]),
        ("Alloc,DeferBatch,Contain", "NO", "/dev/root, GPUs that it opens: 1\n", ["differs", "differs"]),
    ],
)
def test_a_node_that_keeps_nobody_apart_is_seen(
    cluster: PlayedCluster,
    monkeypatch: pytest.MonkeyPatch,
    *,
    flags: str,
    shared: str,
    answer: str,
    verdicts: list[str],
) -> None:
    config = {"Scheduling": {"SlurmQueues": [QUEUE | {"CustomSlurmSettings": {"ExclusiveUser": shared}}]}}
    monkeypatch.setattr("ops.verify.scene.read_cluster_config", lambda _name, _client: config)
    cluster.says("scontrol", f"PrologFlags = {flags}\n")
    cluster.says("srun", answer)
    scene = open_scene("training", cluster.client, lambda _: None, nodes=1)
    assert [check.run(scene).verdict for check in CHECKS] == verdicts
