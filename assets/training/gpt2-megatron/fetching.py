"""Files of the web: whole and with the right sum, or not at all; what was cut off is taken up again."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from trainkit.data.dataset_bucket import BucketError, DatasetBucket
from trainkit.data.shards import ShardError, sha256_of
from trainkit.run.files import sync

RETRIES = 5
BLOCK = 2**22


def have_file(
    file: Path, *, url: str, sha256: str | None = None, key: str, bucket: DatasetBucket | None
) -> None:
    """A file: the one that lies there, else the bucket's, else the web's.

    Raises:
        ShardError: it cannot be had, or its sum is another.
    """
    if file.is_file():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        if bucket and bucket.head(key):
            bucket.download(key, file, sha256=sha256)
            return
    except BucketError as error:
        print(f"data: not from the bucket: {error}")
    download(url, file, sha256=sha256)


def download(url: str, to: Path, *, sha256: str | None = None, sha1: str | None = None) -> None:
    """Fetch with curl; the file has its name when it is whole and its sum right.

    Raises:
        ShardError: it cannot be fetched, or its sum is another.
    """
    partial = to.with_name(f".{to.name}.part")
    curl(url, "--continue-at", "-", "--output", str(partial))
    if sha256 and (found := sha256_of(partial)) != sha256:
        _refuse(partial, url, f"its sha256 is {found}, not {sha256}")
    if sha1 and (found := sha1_of(partial)) != sha1:
        _refuse(partial, url, f"its sha1 is {found}, not {sha1}")
    sync(partial)
    partial.replace(to)


def curl(url: str, *options: str) -> str:
    """What curl printed.

    Raises:
        ShardError: it cannot be fetched.
    """
    command = ["curl", "--fail", "--location", "--silent", "--show-error", "--retry", str(RETRIES)]
    # An hour of a dead connection is no download.
    command += ["--connect-timeout", "30", "--speed-limit", "1000", "--speed-time", "60", *options, url]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise ShardError("there is no curl on this machine: install it, and submit again.") from error
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise ShardError(f"could not fetch {url} ({said}): submit again, and it goes on from there.")
    return done.stdout


def sha1_of(file: Path) -> str:
    """The sha1 of a file, in hexadecimal: what Wikimedia publishes of its dumps."""
    digest = hashlib.sha1(usedforsecurity=False)
    with file.open("rb") as opened:
        while block := opened.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _refuse(partial: Path, url: str, why: str) -> None:
    partial.unlink()
    raise ShardError(f"{url} did not arrive whole: {why}; submit again.")
