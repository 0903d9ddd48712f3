"""Files of the Hugging Face hub: listed with their sums, fetched by curl, which goes on where it was cut off.

Only the standard library. HF_ENDPOINT names a mirror, HF_TOKEN is sent if set: the hub's own variables.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainkit.data.shards import sha256_of
from trainkit.run.files import sync

PUBLIC = "https://huggingface.co"
TIMEOUT_S = 30
RETRIES = 5


class HubError(Exception):
    """What went wrong with the hub, in one sentence without its mend."""


@dataclass(frozen=True, kw_only=True)
class HubFile:
    """One file of a repository at one revision."""

    url: str
    path: str
    size_bytes: int
    sha256: str | None
    """Of large files."""
    git_sha1: str
    """Of small ones: git's id of the content."""


def endpoint() -> str:
    """The hub, or a mirror of it."""
    return os.environ.get("HF_ENDPOINT", PUBLIC).rstrip("/")


def list_files(kind: str, repository: str, revision: str, *, folder: str = "") -> list[HubFile]:
    """Files of one folder of a repository; `kind` is "models" or "datasets".

    Raises:
        HubError: no answer, or no such repository.
    """
    below = f"/{folder}" if folder else ""
    url = f"{endpoint()}/api/{kind}/{repository}/tree/{revision}{below}"
    request = urllib.request.Request(url, headers=_authorization())  # noqa: S310 (https, or a mirror)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
            entries: list[dict[str, Any]] = json.load(answer)
    except (urllib.error.URLError, TimeoutError, ValueError) as error:
        raise HubError(f"{url} does not answer ({error})") from error
    at = f"{endpoint()}/{'datasets/' if kind == 'datasets' else ''}{repository}/resolve/{revision}"
    return [
        HubFile(
            url=f"{at}/{each['path']}",
            path=each["path"],
            size_bytes=each["size"],
            sha256=each.get("lfs", {}).get("oid"),
            git_sha1=each["oid"],
        )
        for each in entries
        if each["type"] == "file"
    ]


def fetch(file: HubFile, to: Path) -> Path:
    """Have a file, whole and with the right sum; one that is there and right is left.

    Raises:
        HubError: it cannot be fetched, or is not what was listed.
    """
    if to.is_file() and _is_right(file, to):
        return to
    to.parent.mkdir(parents=True, exist_ok=True)
    partial = to.with_name(f".{to.name}.part")
    _complete(file, partial)
    if not _is_right(file, partial):
        partial.unlink()
        raise HubError(f"{file.url} is not what the hub lists: its size or sum differs")
    sync(partial)
    partial.replace(to)
    return to


def _complete(file: HubFile, partial: Path) -> None:
    """Fetch what is missing; a connection that breaks off is taken up again, as long as any byte came."""
    size = partial.stat().st_size if partial.is_file() else 0
    while size < file.size_bytes:
        before = size
        try:
            _curl(file.url, partial)
        except HubError:
            size = partial.stat().st_size if partial.is_file() else 0
            if size <= before:
                raise
        else:
            return


def _is_right(file: HubFile, at: Path) -> bool:
    if at.stat().st_size != file.size_bytes:
        return False
    if file.sha256:
        return sha256_of(at) == file.sha256
    content = at.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() == file.git_sha1  # noqa: S324 (git's)


def _curl(url: str, to: Path) -> None:
    """Fetch, from where an earlier attempt was cut off on."""
    headers = "".join(f'header = "{name}: {value}"\n' for name, value in _authorization().items())
    command = ["curl", "--fail", "--location", "--silent", "--show-error", "--config", "-"]
    command += ["--retry", str(RETRIES), "--retry-delay", "2", "--connect-timeout", str(TIMEOUT_S)]
    # An hour of a dead connection is no download.
    command += ["--speed-limit", "1000", "--speed-time", "60", "--continue-at", "-", "--output", str(to), url]
    try:
        # The token goes by stdin: what stands on a command line, every user of the machine can read.
        done = subprocess.run(command, input=headers, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise HubError("there is no curl on this machine") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise HubError(f"could not fetch {url} ({lines[-1]})")


def _authorization() -> dict[str, str]:
    token = os.environ.get("HF_TOKEN")
    return {"Authorization": f"Bearer {token}"} if token else {}
