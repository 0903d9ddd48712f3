"""The provider's list of running jobs: Systems Manager, the head node, a real Slurm."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from ops.account.head_node import as_user
from rehearsal.local_aws.process import LocalAws
from rehearsal.local_slurm import LocalSlurm, NodeShape, parse_partitions
from tests.slow.account import Account
from training_cluster.paths import PCLUSTER_PYTHON, ROOT

pytestmark = pytest.mark.slow

MARKER = ("TRAINING_CLUSTER_TEST", f"jobs-{os.getpid()}")
RESOURCE = {"Name": "cpu", "InstanceType": "m6i.xlarge", "MinCount": 0, "MaxCount": 1}
QUEUE = {"Name": "train", "ComputeResources": [RESOURCE]}
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
    partitions = parse_partitions(
        cluster_config={"Scheduling": {"SlurmQueues": [QUEUE]}},
        shapes={"m6i.xlarge": NodeShape(vcpus=4, memory_mib=16_384)},
    )
    try:
        account = Account(local_aws.start())
        head_node = _head_node(account)
        assert _asked(account, head_node) is None, "it boots, and cannot be reached yet"
        with LocalSlurm(root=root, partitions=partitions, marker=MARKER) as slurm:
            account.address.head_node_shell.write_text(json.dumps(slurm.client_env()))
            assert _asked(account, head_node) == []
            slurm.submit(["--job-name", "pretrain\n7 forged", "--wrap", "sleep 60"])
            while not (named := _asked(account, head_node)):
                pass
            assert len(named) == 1
            assert " pretrain 7 forged (" in named[0]
            _commands_end(account, head_node)
    finally:
        local_aws.stop()


def _commands_end(account: Account, head_node: str) -> None:
    """See one that hangs end at its executionTimeout and when it is cancelled, and one that fails."""
    hangs = as_user("squeue", "--iterate=1")
    assert _ended(account, head_node, hangs, limit_s=2)["StatusDetails"] == "Execution Timed Out"
    cancelled = _ended(account, head_node, hangs, limit_s=60, cancel=True)
    assert (cancelled["Status"], cancelled["ResponseCode"]) == ("Cancelled", 137)
    failed = _ended(account, head_node, as_user("scontrol", "show", "job", "4000000"), limit_s=60)
    assert failed["StandardErrorContent"].endswith("failed to run commands: exit status 1")
    with pytest.raises(account.client("ssm").exceptions.InvalidCommandId):
        account.client("ssm").cancel_command(CommandId="00000000-0000-0000-0000-000000000000")


def _ended(
    account: Account, head_node: str, script: str, *, limit_s: int, cancel: bool = False
) -> dict[str, Any]:
    ssm = account.client("ssm")
    asked = {"commands": [script], "executionTimeout": [str(limit_s)]}
    sent = ssm.send_command(InstanceIds=[head_node], DocumentName="AWS-RunShellScript", Parameters=asked)
    command_id, answer = sent["Command"]["CommandId"], dict[str, Any]()
    with pytest.raises(ssm.exceptions.InvocationDoesNotExist):  # for a moment after it was sent
        ssm.get_command_invocation(CommandId=command_id, InstanceId=head_node)
    deadline = time.monotonic() + 30
    while answer.get("Status") not in ("Success", "Failed", "Cancelled", "TimedOut"):
        assert time.monotonic() < deadline
        time.sleep(0.1)
        answer = ssm.get_command_invocation(CommandId=command_id, InstanceId=head_node)
        if cancel and answer["Status"] == "InProgress":
            ssm.cancel_command(CommandId=command_id)
    return answer
