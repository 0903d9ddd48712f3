"""Mail of a job through the cluster's SNS topic of jobs, which the flag job_emails creates.

The `aws` command of the nodes' images publishes, with the right of the node's role. SNS mails a message to
the addresses of the job's user, and to the addresses of all jobs. Only the standard library.

Reads: JOB_TOPIC (name of the topic, from the partition's environment), AWS_REGION or the node's cfnconfig.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

_CFNCONFIG = Path("/etc/parallelcluster/cfnconfig")
_LONGEST_SUBJECT = 99
_LIMIT_S = 15


class MailError(Exception):
    """A sentence for a person."""


def find_topic() -> str:
    """Return the name of the topic. Raises MailError if this cluster's jobs can send no mail."""
    topic = os.environ.get("JOB_TOPIC")
    if not topic:
        raise MailError(
            "this cluster has no address for mail; to add one: trainctl deploy -c job_emails=USER=ADDRESS"
        )
    if not shutil.which("aws"):
        raise MailError("this node has no aws command, which sends the mail")
    return topic


def send_mail(subject: str, text: str, *, user: str) -> None:
    """Publish a message with the job's user as its attribute. Raises MailError."""
    topic, region = find_topic(), _region()
    _, partition, _, _, account, _ = json.loads(_aws(region, "sts", "get-caller-identity"))["Arn"].split(
        ":", 5
    )
    _aws(
        region,
        *("sns", "publish", "--topic-arn", f"arn:{partition}:sns:{region}:{account}:{topic}"),
        *("--subject", _subject(subject), "--message", text),
        *("--message-attributes", json.dumps({"user": {"DataType": "String", "StringValue": user}})),
    )


def _subject(text: str) -> str:
    """Return a subject that SNS accepts: printable ASCII, fewer than 100 characters."""
    printable = "".join(each if " " <= each <= "~" else "?" for each in text)
    return printable[:_LONGEST_SUBJECT]


def _region() -> str:
    if region := os.environ.get("AWS_REGION"):
        return region
    try:
        found = re.search(r"^cfn_region=(\S+)$", _CFNCONFIG.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        found = None
    if not found:
        raise MailError(f"the region is unknown: {_CFNCONFIG} does not have it, and AWS_REGION is not set")
    return found[1]


def _aws(region: str, *arguments: str) -> str:
    command = ["aws", "--region", region, "--output", "json", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MailError(f"aws {' '.join(arguments[:2])}: {type(error).__name__}") from None
    if done.returncode:
        raise MailError(f"aws {' '.join(arguments[:2])}: {done.stderr.strip()}")
    return done.stdout
