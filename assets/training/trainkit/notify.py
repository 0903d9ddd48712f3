"""Notify the user of a job's start or end, by a webhook in Slack's format or by mail.

    python -m trainkit.notify EVENT TEXT

Called by: job.slurm (notify.sh), as the user, on the job's first node. The webhook's address is a secret:
whoever has it can write to the channel. So it is in a file that its owner alone may read, and never in an
argument, a variable or a log.

Reads: NOTIFY (webhook or mail), NOTIFY_FILE (default ~/.training-cluster/webhook), and Slurm's names of the
job; for mail see mail.py. Only the standard library.
"""

from __future__ import annotations

import http.client
import json
import os
import stat
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from trainkit.mail import MailError, find_topic, send_mail

_LIMIT_S = 10.0
_LOCAL = ("127.0.0.1", "localhost")


class NotifyError(Exception):
    """A sentence without the address."""


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
        address, json.dumps({"text": text}).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=_LIMIT_S):  # noqa: S310 - as above
            pass
    except urllib.error.HTTPError as error:
        raise NotifyError(f"the webhook answered {error.code}") from None
    except (OSError, ValueError, http.client.HTTPException):
        # Python's own message about an invalid address contains the address.
        raise NotifyError("the webhook cannot be reached from this node") from None


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
    except (NotifyError, MailError) as error:
        print(f"notify.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
