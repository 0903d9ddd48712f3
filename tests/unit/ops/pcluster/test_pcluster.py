"""ParallelCluster's own library, asked about cluster configs and their updates in its own environment."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ops.pcluster.dry_run import account_environment, dry_run, errors_without_aws
from ops.pcluster.update_policies import ask_library
from ops.usage import OpsError
from training_cluster.cluster.config import render_cluster_config
from training_cluster.cluster.resource_ids import PLACEHOLDERS
from training_cluster.paths import PCLUSTER_PYTHON, ROOT
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.rules.context import read_settings


def test_a_missing_or_failed_library_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("ops.pcluster.dry_run.PCLUSTER_PYTHON", tmp_path / "python")
    with pytest.raises(OpsError, match="make setup"):
        ask_library([({}, {})])
    for script, says in (
        ("echo 'ImportError: no pcluster' >&2; exit 1", "ImportError: no pcluster"),
        ("exit 3", "exit code 3"),
        ("exit 0", "exit code 0"),
    ):
        python = tmp_path / "python"
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
        monkeypatch.setattr("ops.pcluster.dry_run.PCLUSTER_PYTHON", python)
        with pytest.raises(OpsError, match=f"ended without an answer: {says}"):
            dry_run("training", {}, environment={"PATH": "/usr/bin:/bin"})


def test_the_library_gets_keys_and_region_without_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    found = account_environment()
    assert [found[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN")] == ["key", "token"]
    assert found["AWS_REGION"] == found["AWS_DEFAULT_REGION"] == "eu-north-1"
    assert "AWS_PROFILE" not in found


@pytest.mark.slow
def test_the_library_judges_without_aws(tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}
    environment |= {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y", "AWS_DEFAULT_REGION": "us-east-1"}
    said = dry_run("training", {"Region": "us-east-1"}, environment=environment)
    assert (said.exists, said.messages, said.refused_changes) == (False, (), {})
    assert "http://127.0.0.1:9" in said.refusal
    file = tmp_path / "overrides.yaml"
    for volume, refused in (("gp3", False), ("gp2", True)):
        local = f"LocalStorage: {{RootVolume: {{VolumeType: {volume}, Iops: 3000}}}}"
        file.write_text(f"HeadNode: {{{local}}}")
        errors = errors_without_aws(config_before_deploy(read_settings({"overrides": str(file)})))
        assert [each.validator for each in errors] == ["EbsVolumeIopsValidator"] * refused
    done = subprocess.run([PCLUSTER_PYTHON, "-c", _CHANGES], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found) == {"HeadNode.InstanceType", "Scheduling.SlurmSettings.ScaledownIdletime"}
    assert "not currently supported" in found["HeadNode.InstanceType"]
    assert "stop" in found["Scheduling.SlurmSettings.ScaledownIdletime"].lower()


_CHANGES = """
import json, sys, types
sys.path.insert(0, "ops/pcluster")
from judge_config import _refused
from pcluster.config.config_patch import ConfigPatch

def config(head, count, idle):
    return {"HeadNode": {"InstanceType": head}, "Scheduling": {"SlurmSettings": {"ScaledownIdletime": idle},
        "SlurmQueues": [{"Name": "gpu", "ComputeResources": [{"Name": "p4d", "MaxCount": count}]}]}}

cluster = types.SimpleNamespace(name="training", stack_name="training", has_running_capacity=lambda **_: True)
patch = ConfigPatch(cluster, config("c5.xlarge", 2, 10), config("c5.4xlarge", 4, 20))
print(json.dumps(_refused(patch.check()[1])))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("after", "running", "stopped"),
    [({"nodes": "4"}, False, False), ({"capacity": "spot"}, True, False), ({"os": "ubuntu2204"}, True, True)],
    ids=["live", "idle", "never"],
)
def test_the_library_judges_running_and_stopped_fleets(
    after: dict[str, str], running: bool, stopped: bool
) -> None:
    ids = replace(PLACEHOLDERS, image_id="ami-0123456789abcdef0", bootstrap_budget_s=600)
    configs = [render_cluster_config(settings=read_settings(flags), ids=ids) for flags in ({}, after)]
    (answer,) = ask_library([(configs[0], configs[1])])
    assert bool(answer.running) is running
    assert bool(answer.stopped) is stopped
