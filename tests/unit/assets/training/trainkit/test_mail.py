"""trainkit.mail: what the `aws` command is asked, and what a person reads if no mail can be sent."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from training_cluster.paths import TRAINING

CALLER = '{"Arn": "arn:aws-cn:sts::123456789012:assumed-role/node/i-1"}'


class Node:
    """A node with an `aws` command that keeps its arguments."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.says(f"printf '%s' '{CALLER}'")

    def says(self, script: str) -> None:
        file = self.root / "aws"
        kept = f'printf "%s\\0" "$@" >"{self.root}/$5-$6"'
        file.write_text(f"#!/bin/bash\n{kept}\n{script}\n")
        file.chmod(0o755)

    def published(self) -> dict[str, str]:
        words = (self.root / "sns-publish").read_text().split("\0")[6:-1]
        return dict(zip(words[::2], words[1::2], strict=True))

    def notify(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        base = {"PATH": f"{self.root}:/usr/bin:/bin", "PYTHONPATH": str(TRAINING), "NOTIFY": "mail"}
        slurm = {"SLURM_JOB_ID": "17", "SLURM_JOB_NAME": "gpt2", "SLURM_JOB_USER": "ann"}
        given = {"JOB_TOPIC": "TrainingCluster_training_Jobs", "AWS_REGION": "cn-north-1", **env}
        return subprocess.run(
            [sys.executable, "-B", "-m", "trainkit.notify", *arguments],
            env=base | slurm | {name: value for name, value in given.items() if value},
            capture_output=True,
            text=True,
            timeout=60,
        )


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_message_goes_to_the_clusters_topic_with_the_jobs_user(node: Node) -> None:
    done = node.notify("given up", "the loss is not finite")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    sent = node.published()
    assert sent["--topic-arn"] == "arn:aws-cn:sns:cn-north-1:123456789012:TrainingCluster_training_Jobs"
    assert sent["--message"] == "[given up] job 17 (gpt2 of ann): the loss is not finite"
    assert json.loads(sent["--message-attributes"]) == {"user": {"DataType": "String", "StringValue": "ann"}}


def test_a_subject_is_what_sns_takes_and_the_text_stays_whole(node: Node) -> None:
    text = "naïve\nsecond line " + "x" * 200
    assert node.notify("started", text).returncode == 0
    sent = node.published()
    assert len(sent["--subject"]) == 99
    assert sent["--subject"].startswith("[started] job 17 (gpt2 of ann): na?ve?second line x")
    assert sent["--message"].endswith(text)


def test_a_check_sends_nothing(node: Node) -> None:
    assert node.notify("--check").returncode == 0
    assert [path.name for path in node.root.iterdir()] == ["aws"]


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"JOB_TOPIC": ""}, "this cluster has no address for mail; to add one: npx cdk deploy"),
        ({"PATH": "/nowhere"}, "this node has no aws command"),
    ],
)
def test_a_job_that_can_send_no_mail_is_told_before_it_begins(
    node: Node, env: dict[str, str], said: str
) -> None:
    done = node.notify("--check", **env)
    assert done.returncode == 1
    assert done.stderr.startswith(f"notify.py: {said}"), done.stderr


@pytest.mark.skipif(Path("/etc/parallelcluster/cfnconfig").exists(), reason="this is a node")
def test_without_a_region_a_person_reads_where_it_is_missing(node: Node) -> None:
    said = node.notify("started", "x", AWS_REGION="").stderr
    assert "the region is unknown: /etc/parallelcluster/cfnconfig does not have it" in said


def test_a_refusal_of_aws_is_a_line(node: Node) -> None:
    node.says(f"[[ $5 == sts ]] && printf '%s' '{CALLER}' && exit; echo AuthorizationError >&2; exit 254")
    done = node.notify("started", "x")
    assert (done.returncode, done.stderr) == (1, "notify.py: aws sns publish: AuthorizationError\n")
