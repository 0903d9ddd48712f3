"""Files of the Hugging Face hub, listed with their checksums and downloaded by trainkit.data.fetch.

HF_ENDPOINT names a mirror, and HF_TOKEN is sent if it is set; both are variables of huggingface_hub. That
package compares only the size of a download, not its checksum, so its own download is not used.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainkit.data.fetch import Expected, FetchError, curl, download

PUBLIC = "https://huggingface.co"


@dataclass(frozen=True, kw_only=True)
class HubFile:
    """One file of a repository at one revision."""

    url: str
    path: str
    size_bytes: int
    sha256: str | None
    """Checksum of a large file; None for a small one."""
    git_sha1: str
    """Git's id of the content of a small file."""


def endpoint() -> str:
    """Return the address of the hub, or of a mirror."""
    return os.environ.get("HF_ENDPOINT", PUBLIC).rstrip("/")


def url_of(kind: str, repository: str, revision: str, path: str) -> str:
    """Return the address of a file; `kind` is "models" or "datasets"."""
    root = f"{endpoint()}/{'datasets/' if kind == 'datasets' else ''}{repository}"
    return f"{root}/resolve/{revision}/{path}"


def list_files(kind: str, repository: str, revision: str, *, folder: str = "") -> list[HubFile]:
    """List the files of one folder of a repository; `kind` is "models" or "datasets".

    Raises:
        FetchError: the hub does not answer, or has no such repository.
    """
    below = f"/{folder}" if folder else ""
    url = f"{endpoint()}/api/{kind}/{repository}/tree/{revision}{below}"
    try:
        entries: list[dict[str, Any]] = json.loads(curl(url, headers=_authorization()))
    except ValueError as error:
        raise FetchError(f"{url} is not a list of files ({error})") from error
    return [
        HubFile(
            url=url_of(kind, repository, revision, each["path"]),
            path=each["path"],
            size_bytes=each["size"],
            sha256=each.get("lfs", {}).get("oid"),
            git_sha1=each["oid"],
        )
        for each in entries
        if each["type"] == "file"
    ]


def fetch(file: HubFile, to: Path) -> Path:
    """Download a file unless it exists and has the right content.

    Raises:
        FetchError: the file cannot be downloaded, or is not the listed one.
    """
    expected = Expected(
        size_bytes=file.size_bytes, sha256=file.sha256, git_sha1=None if file.sha256 else file.git_sha1
    )
    if not to.is_file() or expected.mismatch(to):
        download(file.url, to, expected=expected, headers=_authorization())
    return to


def _authorization() -> dict[str, str]:
    token = os.environ.get("HF_TOKEN")
    return {"Authorization": f"Bearer {token}"} if token else {}
