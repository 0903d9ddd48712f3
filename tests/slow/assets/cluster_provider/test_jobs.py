"""The provider's list of running jobs: Systems Manager, the head node, a real Slurm."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rehearsal.local_aws.process import LocalAws
from tests.slow.account import Account
from tests.slow.assets.training.training import local_slurm
from training_cluster.paths import PCLUSTER_PYTHON, ROOT

pytestmark = pytest.mark.slow

MARKER = ("TRAINING_CLUSTER_TEST", f"jobs-{os.getpid()}")
ASK = "import json, sys, jobs; print(json.dumps(jobs.running(sys.argv[1])))"


def _head_node(account: Account) -> str:
    ec2 = account.client("ec2")
    tags = [{"Key": "parallelcluster:node-type", "Value": "HeadNode"}]
    answer = ec2.run_instances(
        ImageId=ec2.describe_images()["Images"][0]["ImageId"],
        MinCount=1,
        MaxCount=1,
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
    )
    return str(answer["Instances"][0]["InstanceId"])


def _asked(account: Account, head_node: str) -> Any:
    done = subprocess.run(
        [PCLUSTER_PYTHON, "-c", ASK, head_node],
        env=account.address.client_environment() | {"PYTHONPATH": str(ROOT / "assets" / "cluster_provider")},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_a_reachable_head_node_names_its_running_jobs(tmp_path: Path) -> None:
    aws, root = tmp_path / "aws", tmp_path / "slurm"
    aws.mkdir()
    local_aws = LocalAws(folder=aws, marker=MARKER)
    try:
        account = Account(local_aws.start())
        head_node = _head_node(account)
        assert _asked(account, head_node) is None, "it boots, and cannot be reached yet"
        with local_slurm(root, mark="jobs") as slurm:
            account.address.head_node_shell.write_text(json.dumps(slurm.client_env()))
            assert _asked(account, head_node) == []
            slurm.submit(["--job-name", "pretrain\n7 forged", "--wrap", "sleep 60"])
            while not (named := _asked(account, head_node)):
                pass
            assert len(named) == 1
            assert " pretrain 7 forged (" in named[0]
    finally:
        local_aws.stop()
