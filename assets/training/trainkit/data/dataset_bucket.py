"""Token shards and models in the cluster's bucket, below datasets/, which outlive a cluster.

Jobs of a cluster that several people share may not write there, but to a folder of their user.

Transfers use the aws program, which every node has. Lustre imports objects by itself, so downloads are rare.
An upload sets owner and mode in the form that FSx for Lustre reads (its guide, "POSIX metadata support for
data repositories").
"""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainkit.data.shards import MANIFEST, Manifest, Shard, parse_manifest, sha256_of
from trainkit.run.files import sync

# Each transfer is a process with many parallel parts.
AT_ONCE = 4


class BucketError(Exception):
    """An error of the bucket. The message is one sentence."""


@dataclass(frozen=True)
class DatasetBucket:
    """One folder of the bucket, such as datasets/gpt2."""

    bucket: str
    prefix: str
    uploads: str = ""
    """Folder of uploads, such as users/alice/datasets/gpt2; empty if uploads go to the same folder."""

    @classmethod
    def of_workload(cls, workload: str) -> DatasetBucket | None:
        """Return the workload's folder of the cluster's bucket; None without a bucket (TRAINING_BUCKET)."""
        bucket, own = os.environ.get("TRAINING_BUCKET"), os.environ.get("TRAINING_UPLOADS")
        folder = f"datasets/{workload}"
        return cls(bucket, folder, f"{own}/{folder}" if own else "") if bucket else None

    @property
    def places(self) -> list[DatasetBucket]:
        """This folder, then that of uploads if it is another one."""
        own = DatasetBucket(self.bucket, self.uploads or self.prefix)
        return list(dict.fromkeys((self, own)))

    def url(self, key: str) -> str:
        """Return the S3 address of a key of this folder."""
        return f"s3://{self.bucket}/{self.prefix}/{key}"

    def head(self, key: str) -> dict[str, Any] | None:
        """Return size ("ContentLength") and metadata ("Metadata") of an object; None if it does not exist.

        Raises:
            BucketError: the bucket does not answer.
        """
        try:
            said = _aws("s3api", "head-object", "--bucket", self.bucket, "--key", f"{self.prefix}/{key}")
        except BucketError as error:
            # S3 answers 403 for a missing object if the caller may not list the bucket.
            if re.search(r"\((404|403)\)", str(error)):
                return None
            raise
        found: dict[str, Any] = json.loads(said)
        return found

    def text(self, key: str) -> str | None:
        """Read a small object; return None if it does not exist."""
        return None if self.head(key) is None else _aws("s3", "cp", "--only-show-errors", self.url(key), "-")

    def download(self, key: str, file: Path, *, sha256: str | None = None) -> None:
        """Download a file with a verified checksum, or write nothing."""
        partial = file.with_name(f".{file.name}.partial")
        file.parent.mkdir(parents=True, exist_ok=True)
        _aws("s3", "cp", "--only-show-errors", self.url(key), str(partial))
        if sha256 is not None and (found := sha256_of(partial)) != sha256:
            partial.unlink()
            raise BucketError(f"{self.url(key)} is corrupt: its sha256 is {found}, not {sha256}")
        sync(partial)
        partial.replace(file)

    def upload(self, file: Path, key: str, *, sha256: str) -> bool:
        """Upload a file; return False if the bucket has one of the same size and checksum."""
        found = self.head(key)
        size = file.stat().st_size
        if found and (found["ContentLength"], found.get("Metadata", {}).get("sha256")) == (size, sha256):
            return False
        metadata = {"sha256": sha256, **_posix(file)}
        pairs = ",".join(f"{name}={value}" for name, value in metadata.items())
        _aws("s3", "cp", "--only-show-errors", "--metadata", pairs, str(file), self.url(key))
        return True

    def download_shards(self, name: str, folder: Path) -> None:
        """Download a folder of shards, its manifest last; shards of the right size are kept."""
        text = self.text(f"{name}/{MANIFEST}")
        if text is None:
            raise BucketError(f"{self.url(name)} has no {MANIFEST}")
        manifest = parse_manifest(text, where=self.url(f"{name}/{MANIFEST}"))

        def fetch(shard: Shard) -> bool:
            file = folder / shard.file
            if file.is_file() and file.stat().st_size == manifest.size_bytes(shard):
                return False
            self.download(f"{name}/{shard.file}", file, sha256=shard.sha256)
            return True

        _each(fetch, manifest, doing=f"taken from {self.url(name)}")
        for extra in EXTRAS:
            if self.head(f"{name}/{extra}"):
                self.download(f"{name}/{extra}", folder / extra)
        self.download(f"{name}/{MANIFEST}", folder / MANIFEST)

    def upload_shards(self, name: str, folder: Path, manifest: Manifest) -> None:
        """Upload a folder of shards, its manifest last; shards that the bucket has are skipped."""
        own, text = self.places[-1], (folder / MANIFEST).read_text(encoding="utf-8")
        if any(each.text(f"{name}/{MANIFEST}") == text for each in self.places):
            return

        def send(shard: Shard) -> bool:
            return own.upload(folder / shard.file, f"{name}/{shard.file}", sha256=shard.sha256)

        _each(send, manifest, doing=f"in {own.url(name)}")
        for extra in EXTRAS:
            if (folder / extra).is_file():
                own.upload(folder / extra, f"{name}/{extra}", sha256=sha256_of(folder / extra))
        own.upload(folder / MANIFEST, f"{name}/{MANIFEST}", sha256=sha256_of(folder / MANIFEST))


EXTRAS = ("tokenizer.json", "tokenizer_config.json", "encoder.json", "vocab.bpe", "dict.txt")
"""Other files that a folder of shards may have."""


def _each(do: Callable[[Shard], bool], manifest: Manifest, *, doing: str) -> None:
    started, done, shards = time.monotonic(), 0, manifest.shards()
    size = sum(map(manifest.size_bytes, shards))
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for number, (shard, moved) in enumerate(zip(shards, threads.map(do, shards), strict=True), start=1):
            done += manifest.size_bytes(shard)
            if moved or number == len(shards):
                seconds = time.monotonic() - started
                print(f"data: {done / 1e6:,.1f} of {size / 1e6:,.1f} MB {doing}, {seconds:.0f} s")


def download_folder(url: str, folder: Path, *, patterns: Sequence[str]) -> None:
    """Download objects of a bucket's folder whose names match a pattern and that differ from the local files.

    Raises:
        BucketError: the bucket does not answer, or may not be read.
    """
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [word for pattern in patterns for word in ("--include", pattern)]
    _aws("s3", "sync", "--only-show-errors", f"{url}/", str(folder), "--exclude", "*", *chosen)


def _posix(file: Path) -> dict[str, str]:
    """Return owner and mode in the form that FSx for Lustre reads from an object's metadata."""
    found = file.stat()
    return {
        "file-owner": str(found.st_uid),
        "file-group": str(found.st_gid),
        "file-permissions": f"0{stat.S_IFREG | stat.S_IMODE(found.st_mode):o}",
    }


def _aws(*arguments: str) -> str:
    """Run the aws program and return its output."""
    try:
        done = subprocess.run(["aws", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise BucketError("there is no aws program on this machine") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise BucketError(f"aws {' '.join(arguments[:2])}: {lines[-1]}")
    return done.stdout
