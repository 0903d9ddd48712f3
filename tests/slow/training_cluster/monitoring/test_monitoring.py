"""Mail of jobs on a local AWS, with dashboard, alarms and budget."""

import json
import subprocess
import sys

import pytest

from rehearsal.local_aws.address import PROGRAMS
from tests.slow.account import Account
from tests.unit.training_cluster.monitoring.monitored import monitored
from training_cluster.paths import TRAINING
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
