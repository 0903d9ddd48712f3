"""`trainctl check-nodes`: which nodes it sweeps, what it reads of the result, and whom it drains."""

import json
import subprocess
from pathlib import Path

import pytest

from ops.jobs.check_nodes import SickNode, Swept, drain, read_sweep, sentences, start_sweep
from ops.usage import OpsError
from tests.unit.ops.jobs_head_node import PlayedCluster
from training_cluster.paths import ROOT

SCRIPT = ROOT / "ops" / "account" / "head_node_scripts" / "drain-node.sh"
STATES = "gpu-dy-p4d-1|idle\ngpu-dy-p4d-2|allocated\ngpu-dy-p4d-3|idle~\ngpu-dy-p4d-4|idle\n"


@pytest.fixture
def swept_cluster(cluster: PlayedCluster) -> PlayedCluster:
    (cluster.shared / "training" / "nccl-tests").mkdir()
    (cluster.shared / "training" / "nccl-tests" / "train.sh").touch()
    cluster.does(
        "sinfo",
        f"""case "$*" in
        *'%N|%T'*) printf %b {STATES!r} ;;
        *--format=%N*) seq -f gpu-dy-p4d-%g 4 ;;
        *) say $'gpu*|up|idle|4|gpu-dy-p4d-[1-4]|Unknown|none\\n' ;;
        esac""",
    )
    cluster.says("sbatch", "31\n")
    return cluster


def test_idle_running_nodes_are_swept(swept_cluster: PlayedCluster) -> None:
    sweep = start_sweep(None, None, swept_cluster.head_node)
    assert sweep.nodes == ("gpu-dy-p4d-1", "gpu-dy-p4d-4")
    (call,) = swept_cluster.called("sbatch")
    assert {"--nodes=2", "--partition=gpu", "--nodelist=gpu-dy-p4d-1,gpu-dy-p4d-4"} <= set(call)
    assert call[-1] == "nccl-tests"
    assert "LAUNCHER=sweep" in sweep.submitted.command


def test_named_nodes_are_swept_whatever_they_do(swept_cluster: PlayedCluster) -> None:
    swept_cluster.says("scontrol", "gpu-dy-p4d-2\ngpu-dy-p4d-3\n")
    assert start_sweep("gpu-dy-p4d-[2-3]", "gpu", swept_cluster.head_node).nodes == (
        "gpu-dy-p4d-2",
        "gpu-dy-p4d-3",
    )


def test_what_cannot_be_swept_is_refused(swept_cluster: PlayedCluster) -> None:
    swept_cluster.says("scontrol", "gpu-dy-p4d-9\n")
    for names, partition, said in (
        (None, "cpu", "has no partition cpu"),
        ("gpu-dy-p4d-9", None, "has no node gpu-dy-p4d-9"),
    ):
        with pytest.raises(OpsError, match=said):
            start_sweep(names, partition, swept_cluster.head_node)
    swept_cluster.does(
        "sinfo",
        "case \"$*\" in *'%N|%T'*) echo 'gpu-dy-p4d-1|idle~' ;; "
        "*) say $'gpu*|up|idle|4|gpu-dy-p4d-[1-4]|Unknown|none\\n' ;; esac",
    )
    with pytest.raises(OpsError, match="No node of gpu is running and idle"):
        start_sweep(None, None, swept_cluster.head_node)
    swept_cluster.has_nodes("trn1.32xlarge", recipe="neuron", ACCELERATOR_KIND="neuron")
    with pytest.raises(OpsError, match="nccom-test"):
        start_sweep(None, None, swept_cluster.head_node)
    assert swept_cluster.called("sbatch") == []


def test_the_result_names_bad_and_undecided_nodes(swept_cluster: PlayedCluster) -> None:
    sweep = start_sweep(None, None, swept_cluster.head_node)
    with pytest.raises(OpsError, match="ended without a verdict"):
        read_sweep(sweep, swept_cluster.head_node)
    sweep = start_sweep(None, None, swept_cluster.head_node)
    folder = swept_cluster.shared / "runs" / "nccl-tests" / sweep.run
    folder.mkdir(parents=True)
    bad = {"node": "gpu-dy-p4d-1", "alone": None, "pair": None, "reason": "alone: no end", "note": ""}
    unsure = {"node": "gpu-dy-p4d-4", "alone": 1, "pair": 2, "reason": "", "note": "no good pair"}
    (folder / "sweep.json").write_text(json.dumps({"swept": 5, "nodes": [bad, unsure]}))
    found = read_sweep(sweep, swept_cluster.head_node)
    assert sentences(found) == [
        "gpu-dy-p4d-1: BAD, alone: no end",
        "gpu-dy-p4d-4: undecided, no good pair",
        "3 of 5 node(s) are good.",
    ]
    assert sentences(Swept(job_id="1", run="r", nodes=5, sick=())) == ["All 5 node(s) are good."]


def test_a_bad_node_keeps_its_first_drain_reason(swept_cluster: PlayedCluster, tmp_path: Path) -> None:
    node = SickNode(node="gpu-dy-p4d-1", reason="alone: no end within 300 s", note="")
    swept_cluster.says("scontrol", "NodeName=gpu-dy-p4d-1 State=IDLE+CLOUD ThreadsPerCore=1\n")
    environment = swept_cluster.environment
    # As root, sudo is not asked; others need it.
    sudo = Path(environment["PATH"].split(":")[0]) / "sudo"
    sudo.write_text('#!/bin/bash\nshift\nexec "$@"\n')
    sudo.chmod(0o755)
    assert drain(node, swept_cluster.head_node).endswith("drained")
    call = swept_cluster.calls[-1]
    assert call[:4] == ["scontrol", "update", "nodename=gpu-dy-p4d-1", "state=drain"]
    assert call[4] == "reason=training-cluster: check-nodes, alone: no end within 300 s"
    swept_cluster.says("scontrol", "NodeName=gpu-dy-p4d-1 State=IDLE+CLOUD+DRAIN ThreadsPerCore=1\n")
    done = subprocess.run(
        ["bash", str(SCRIPT), "gpu-dy-p4d-1", "why"], env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "drains already\n")
