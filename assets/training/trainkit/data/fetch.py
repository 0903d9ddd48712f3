"""Downloads by curl: they resume after an interruption, and are checked before the file gets its name."""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trainkit.data.dataset_bucket import BucketError, DatasetBucket
from trainkit.data.shards import ShardError, sha256_of
from trainkit.run.files import sync

RETRIES = 5
TIMEOUT_S = 30
# A connection that remains below this speed for this time is dead.
MIN_BYTES_PER_S = 1000
MAX_SLOW_S = 60
BLOCK = 2**22
RESUME = "submit again, which resumes the download"


class FetchError(ShardError):
    """Failed download: the reason, and what to do about it."""

    def __init__(self, reason: str, remedy: str = RESUME) -> None:
        # Both are arguments of the exception, so that processes can pass it on.
        super().__init__(reason, remedy)
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.args[0]}: {self.args[1]}."


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Size and checksums that a file must have; None for those that are not published."""

    size_bytes: int | None = None
    sha256: str | None = None
    git_sha1: str | None = None
    """Git's id of the content."""

    def mismatch(self, file: Path) -> str:
        """Compare a file with these; return what differs, "" if nothing does."""
        size = file.stat().st_size
        if self.size_bytes not in {None, size}:
            return f"its size is {size:,} bytes, not {self.size_bytes:,}"
        if self.sha256 and (found := sha256_of(file)) != self.sha256:
            return f"its sha256 is {found}, not {self.sha256}"
        if self.git_sha1 and (found := _git_sha1_of(file, size)) != self.git_sha1:
            return f"its git object id is {found}, not {self.git_sha1}"
        return ""


ANY = Expected()


def ensure_file(
    file: Path, *, url: str, key: str, bucket: DatasetBucket | None, sha256: str | None = None
) -> Path:
    """Use an existing file, or download it from the bucket, otherwise from the web.

    Raises:
        FetchError: the file cannot be downloaded, or has another checksum.
    """
    if not file.is_file() and not (bucket and _from_bucket(bucket, key, file, sha256=sha256)):
        print(f"data: fetching {url}")
        download(url, file, expected=Expected(sha256=sha256))
    if why := Expected(sha256=sha256).mismatch(file):
        raise FetchError(f"{file} is not the expected file: {why}", "remove it, and submit again")
    return file


@contextmanager
def alone(file: Path) -> Iterator[None]:
    """Let one process of this node download a file; the others wait, and fail as it did.

    Raises:
        FetchError: the download failed for which this process waited.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    lock = file.with_name(f".{file.name}.lock")
    with lock.open("a+", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        try:
            held.seek(0)
            if why := held.read():
                raise FetchError(why)
            try:
                yield
            except FetchError as error:
                held.write(error.reason)
                raise
        finally:
            # Who waits has opened it already, and finds the file, or the reason in the lock.
            lock.unlink(missing_ok=True)


def download(
    url: str, to: Path, *, expected: Expected = ANY, headers: Mapping[str, str] | None = None
) -> None:
    """Download a file; a broken connection is resumed as long as bytes arrive.

    Raises:
        FetchError: the file cannot be downloaded, or is not the expected one.
    """
    to.parent.mkdir(parents=True, exist_ok=True)
    partial = to.with_name(f".{to.name}.part")
    while expected.size_bytes is None or size_of(partial) < expected.size_bytes:
        before = size_of(partial)
        try:
            curl(url, "--continue-at", "-", "--output", str(partial), headers=headers)
        except FetchError as error:
            if size_of(partial) <= before:
                raise FetchError(error.reason, f"{RESUME}, or copy the file to {to} yourself") from error
        else:
            break
    if why := expected.mismatch(partial):
        partial.unlink()
        raise FetchError(f"the download of {url} is not the expected file: {why}", "submit again")
    sync(partial)
    partial.replace(to)


def curl(url: str, *options: str, headers: Mapping[str, str] | None = None) -> str:
    """Run curl; return what it prints. Raises FetchError: curl is missing, or fails."""
    command = ["curl", "--fail", "--location", "--silent", "--show-error", "--config", "-"]
    command += ["--retry", str(RETRIES), "--retry-delay", "2", "--connect-timeout", str(TIMEOUT_S)]
    command += ["--speed-limit", str(MIN_BYTES_PER_S), "--speed-time", str(MAX_SLOW_S), *options, url]
    # Headers may contain a token and go to stdin, since all users of the machine can read command lines.
    config = "".join(f'header = "{name}: {value}"\n' for name, value in (headers or {}).items())
    try:
        done = subprocess.run(command, input=config, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise FetchError("there is no curl on this machine", "install it, and submit again") from error
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise FetchError(f"could not fetch {url} ({said})")
    return done.stdout


def _from_bucket(bucket: DatasetBucket, key: str, file: Path, *, sha256: str | None) -> bool:
    """Download a file if the bucket has it; return False if it does not, or does not answer."""
    try:
        if not bucket.head(key):
            return False
        print(f"data: fetching {bucket.url(key)}")
        bucket.download(key, file, sha256=sha256)
    except BucketError as error:
        print(f"data: not from the bucket: {error}")
        return False
    return True


def size_of(file: Path) -> int:
    """Return the size of a file in bytes, 0 if it has just gone."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def _git_sha1_of(file: Path, size: int) -> str:
    digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    with file.open("rb") as opened:
        while block := opened.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()
