"""Notify the user of a job's start or end, by a webhook in Slack's format or by mail.

    python -m trainkit.notify EVENT TEXT

Called by: job.slurm (notify.sh), as the user, on the job's first node. The webhook's address is a secret:
whoever has it can write to the channel. So it is in a file that its owner alone may read, and never in an
argument, a variable or a log.

Mail goes through the cluster's SNS topic of jobs, which the flag job_emails creates. The `aws` command of the
nodes' images publishes, with the job's right. SNS mails a message to the addresses of the job's
user, and to the addresses of all jobs.

Reads: NOTIFY (webhook or mail), NOTIFY_FILE (default ~/.training-cluster/webhook), Slurm's names of the job;
for mail JOB_TOPIC (name of the topic, from the partition's environment), AWS_REGION or the node's cfnconfig.
Only the standard library.
"""

from __future__ import annotations

import html
import http.client
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

_LIMIT_S = 10.0
_LOCAL = ("127.0.0.1", "localhost")
_CFNCONFIG = Path("/etc/parallelcluster/cfnconfig")
_LONGEST_SUBJECT = 99
_MAIL_LIMIT_S = 15


class NotifyError(Exception):
    """A sentence for a person, without the address."""


def webhook_file() -> Path:
    """Return the file with the address."""
    return Path(os.environ.get("NOTIFY_FILE") or Path.home() / ".training-cluster" / "webhook")


def read_address(file: Path) -> str:
    """Read the address. Raises NotifyError if the file is missing, may be read by others, or holds none."""
    make = f"(umask 077; mkdir -p {file.parent}; cat >{file}), then paste the address and press Ctrl-D"
    try:
        found = file.stat()
        address = file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        raise NotifyError(f"{file} cannot be read ({error.strerror}); to make it: {make}") from None
    if found.st_uid != os.getuid() or found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise NotifyError(f"{file} may be read by others: chmod 600 {file}")
    try:
        parts = urllib.parse.urlsplit(address)
    except ValueError:
        parts = urllib.parse.urlsplit("")
    if len(address.split()) != 1 or not (
        parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOCAL)
    ):
        raise NotifyError(f"{file} does not hold one https:// address")
    return address


def send(address: str, text: str) -> None:
    """Post a message. Raises NotifyError."""
    request = urllib.request.Request(  # noqa: S310 - read_address takes https alone
        address,
        # Slack's three characters: <!channel> in the name of a job would call everybody.
        json.dumps({"text": html.escape(text, quote=False)}).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=_LIMIT_S):  # noqa: S310 - as above
            pass
    except urllib.error.HTTPError as error:
        raise NotifyError(f"the webhook answered {error.code}") from None
    except (OSError, ValueError, http.client.HTTPException):
        # Python's own message about an invalid address contains the address.
        raise NotifyError("the webhook cannot be reached from this node") from None


def find_topic() -> str:
    """Return the name of the topic. Raises NotifyError if this cluster's jobs can send no mail."""
    topic = os.environ.get("JOB_TOPIC")
    if not topic:
        raise NotifyError(
            "this cluster has no address for mail; to add one, an administrator types: "
            "trainctl deploy --cluster NAME -c job_emails=USER=ADDRESS"
        )
    if not shutil.which("aws"):
        raise NotifyError("this node has no aws command, which sends the mail")
    return topic


def send_mail(subject: str, text: str, *, user: str) -> None:
    """Publish a message with the job's user as its attribute. Raises NotifyError."""
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
        raise NotifyError(f"the region is unknown: {_CFNCONFIG} does not have it, and AWS_REGION is not set")
    return found[1]


def _aws(region: str, *arguments: str) -> str:
    command = ["aws", "--region", region, "--output", "json", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_MAIL_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotifyError(f"aws {' '.join(arguments[:2])}: {type(error).__name__}") from None
    if done.returncode:
        raise NotifyError(f"aws {' '.join(arguments[:2])}: {done.stderr.strip()}")
    return done.stdout


def message(event: str, text: str) -> str:
    """Return the message about this job."""
    job, user = os.environ.get("SLURM_JOB_ID", "?"), os.environ.get("SLURM_JOB_USER", "")
    name = os.environ.get("SLURM_JOB_NAME", "")
    return f"[{event}] job {job} ({name}{f' of {user}' if user else ''}): {text}"


def main() -> int:
    """Send one message, or with --check look whether one could be sent."""
    is_check = sys.argv[1:] == ["--check"]
    try:
        if os.environ.get("NOTIFY") == "mail":
            find_topic()
            if not is_check:
                text = message(*sys.argv[1:3])
                send_mail(text, text, user=os.environ.get("SLURM_JOB_USER", ""))
        else:
            address = read_address(webhook_file())
            if not is_check:
                send(address, message(*sys.argv[1:3]))
    except NotifyError as error:
        print(f"notify.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
