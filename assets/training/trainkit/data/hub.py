"""Files of the Hugging Face hub, listed with their checksums and downloaded by trainkit.data.fetch.

HF_ENDPOINT names a mirror; HF_TOKEN or the token of `hf auth login` is sent. These are huggingface_hub's own
names. Over HTTP that package compares only the size of a download, not its checksum, and an interrupted job
begins the file again (1.33 and 2.4), so its own download is not used.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from trainkit.data.fetch import Expected, FetchError, alone, curl, download

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
    return f"{root}/resolve/{revision}/{quote(path)}"


def commit_of(kind: str, repository: str, revision: str) -> str:
    """Return the commit of a branch, a tag or a commit; `kind` is "models" or "datasets".

    Raises:
        FetchError: the hub does not answer, or has no such repository or revision.
    """
    found: dict[str, str] = _ask(f"{kind}/{repository}/revision/{quote(revision, safe='')}")
    return found["sha"]


def list_files(kind: str, repository: str, revision: str, *, folder: str = "") -> list[HubFile]:
    """List the files of one folder of a repository; `kind` is "models" or "datasets".

    Raises:
        FetchError: the hub does not answer, or has no such repository.
    """
    below = f"/{folder}" if folder else ""
    entries: list[dict[str, Any]] = _ask(f"{kind}/{repository}/tree/{revision}{below}")
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


def all_files(kind: str, repository: str, commit: str) -> list[HubFile]:
    """List the files of a repository and its folders; `kind` is "models" or "datasets".

    Raises:
        FetchError: the hub does not answer, or has no such repository.
    """
    found: dict[str, Any] = _ask(f"{kind}/{repository}/revision/{commit}?blobs=true")
    return [
        HubFile(
            url=url_of(kind, repository, commit, each["rfilename"]),
            path=each["rfilename"],
            size_bytes=each["size"],
            sha256=(each.get("lfs") or {}).get("sha256"),
            git_sha1=each["blobId"],
        )
        for each in found["siblings"]
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
        with alone(to):
            if not to.is_file() or expected.mismatch(to):
                download(file.url, to, expected=expected, headers=_authorization())
    return to


def _ask(path: str) -> Any:
    url = f"{endpoint()}/api/{path}"
    try:
        return json.loads(curl(url, headers=_authorization()))
    except ValueError as error:
        raise FetchError(f"the answer of {url} is not JSON ({error})") from error


def _authorization() -> dict[str, str]:
    stored = Path(os.environ.get("HF_HOME") or "~/.cache/huggingface").expanduser() / "token"
    token = os.environ.get("HF_TOKEN") or (stored.read_text("utf-8").strip() if stored.is_file() else "")
    return {"Authorization": f"Bearer {token}"} if token else {}
