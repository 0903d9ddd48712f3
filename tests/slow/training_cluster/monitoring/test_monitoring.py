"""Mail of jobs on a local AWS, with dashboard, alarms and budget; the states of a real Slurm's nodes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rehearsal.local_aws.address import PROGRAMS
from rehearsal.local_slurm import LocalSlurm
from tests.slow.account import Account
from tests.slow.assets.training.training import NODES, local_slurm
from tests.slow.rehearsal.local_slurm.test_local_slurm import wait_for_states
from tests.unit.training_cluster.monitoring.monitored import monitored
from training_cluster.paths import ASSETS, TRAINING
from training_cluster.stack_names import DEFAULT_CLUSTER, jobs_topic

pytestmark = pytest.mark.slow


def _deploy(account: Account, **flags: str) -> None:
    template = monitored(**flags).to_json()
    # CDK's check of the bootstrap stack, which this account does not have.
    account.deploy("seen", {"Resources": template["Resources"]})


def _notify(account: Account, event: str, *, user: str) -> subprocess.CompletedProcess[str]:
    """Send a message as a job of this user does, with the node's `aws` command."""
    variables = account.address.client_variables()
    slurm = {"SLURM_JOB_ID": "17", "SLURM_JOB_NAME": "gpt2", "SLURM_JOB_USER": user}
    mail = {"NOTIFY": "mail", "JOB_TOPIC": jobs_topic(DEFAULT_CLUSTER), "PYTHONPATH": str(TRAINING)}
    return subprocess.run(
        [sys.executable, "-B", "-m", "trainkit.notify", event, "on 2 nodes"],
        env=variables | slurm | mail | {"PATH": f"{PROGRAMS}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )


def test_mail_of_jobs_reaches_their_user_alone(account: Account) -> None:
    same = {"alarm_email": "you@example.com", "budget_usd": "9000"}
    _deploy(account, **same, job_emails="ann=ann@example.com,team@example.com")
    sns, sqs = account.client("sns"), account.client("sqs")
    (topic,) = [each["TopicArn"] for each in sns.list_topics()["Topics"] if "_Jobs" in each["TopicArn"]]
    found = {e["Endpoint"]: e for e in sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]}
    assert set(found) == {"ann@example.com", "team@example.com"}
    # Nobody can read a mail here: a queue with the address's filter stands for it.
    queue = sqs.create_queue(QueueName="ann")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    filters = {"FilterPolicy": json.dumps({"user": ["ann"]})}
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes=filters)
    for event, user in (("started", "bob"), ("finished", "ann")):
        done = _notify(account, event, user=user)
        assert (done.returncode, done.stderr) == (0, "")
    got = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=5)["Messages"]
    (message,) = [json.loads(each["Body"]) for each in got]
    assert message["Message"] == "[finished] job 17 (gpt2 of ann): on 2 nodes"
    assert message["Subject"] == message["Message"]
    _deploy(account, **same)
    assert "NotFound" in _notify(account, "started", user="ann").stderr


def _published(slurm: LocalSlurm, folder: Path) -> dict[str, float]:
    """Return the nonzero values that the head node's program publishes of the one partition."""
    aws = folder / "bin" / "aws"
    aws.parent.mkdir(exist_ok=True)
    aws.write_text('#!/bin/bash\nprintf "%s" "${@: -1}"\n')
    aws.chmod(0o755)
    environment = slurm.client_env()
    done = subprocess.run(
        [
            *(sys.executable, "-B", str(ASSETS / "bootstrap" / "metrics" / "head_node.py")),
            *("--cluster", DEFAULT_CLUSTER, "--region", "us-east-1"),
            *("--state", str(folder / "state"), "--runs", str(folder / "runs")),
        ],
        env=environment | {"PATH": f"{aws.parent}:{environment['PATH']}"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = {}
    for datum in json.loads(done.stdout):
        dimensions = {each["Name"]: each["Value"] for each in datum["Dimensions"]}
        assert dimensions["Partition"] == "train"
        found[dimensions["State"]] = datum["StatisticValues"]["Sum"]
    return {state: nodes for state, nodes in found.items() if nodes}


def test_states_of_real_nodes_are_published(tmp_path: Path) -> None:
    with local_slurm(tmp_path, mark="states") as slurm:
        assert _published(slurm, tmp_path) == {}
        job = slurm.submit(["--nodes=2", "--exclusive", "--wrap", "sleep 600"])
        wait_for_states(slurm, "allocated", timeout_s=60)
        assert _published(slurm, tmp_path) == {"allocated": 2}
        drain = ["scontrol", "update", f"nodename={NODES[0]}", "state=drain", "reason=test"]
        subprocess.run(drain, env=slurm.client_env(), check=True)
        assert _published(slurm, tmp_path) == {"allocated": 1, "down": 1}
        slurm.cancel(job)
