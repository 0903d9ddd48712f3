"""The real library, in its own environment, as judge of one cluster config."""

import json
import subprocess

import pytest

from ops.pcluster.dry_run import Change, dry_run
from training_cluster.paths import PCLUSTER_PYTHON, ROOT


@pytest.mark.slow
def test_without_aws_the_library_refuses_to_judge() -> None:
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}
    environment |= {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y", "AWS_DEFAULT_REGION": "us-east-1"}
    said = dry_run("training", {"Region": "us-east-1"}, environment=environment)
    assert (said.exists, said.messages, said.changes) == (False, (), ())
    assert "http://127.0.0.1:9" in said.refusal


_CHANGES = """
import json, sys, types
sys.path.insert(0, "ops/pcluster")
from judge_config import _changes
from pcluster.config.config_patch import ConfigPatch

def config(head, count, idle):
    return {"HeadNode": {"InstanceType": head}, "Scheduling": {"SlurmSettings": {"ScaledownIdletime": idle},
        "SlurmQueues": [{"Name": "gpu", "ComputeResources": [{"Name": "p4d", "MaxCount": count}]}]}}

cluster = types.SimpleNamespace(name="training", stack_name="training", has_running_capacity=lambda **_: True)
patch = ConfigPatch(cluster, config("c5.xlarge", 2, 10), config("c5.4xlarge", 4, 20))
print(json.dumps(_changes(patch.check()[1])))
"""


@pytest.mark.slow
def test_changes_have_the_library_s_policy_and_reason() -> None:
    done = subprocess.run(
        [PCLUSTER_PYTHON, "-c", _CHANGES], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = {change.parameter: change for change in (Change(**each) for each in json.loads(done.stdout))}
    head = found["HeadNode.InstanceType"]
    assert (head.old, head.new, head.policy) == ("c5.xlarge", "c5.4xlarge", "UNSUPPORTED")
    assert "not currently supported" in head.refusal
    grown = found["Scheduling.SlurmQueues[gpu].ComputeResources[p4d].MaxCount"]
    assert (grown.old, grown.new, grown.refusal) == ("2", "4", "")
    assert "stop" in found["Scheduling.SlurmSettings.ScaledownIdletime"].refusal.lower()
