"""INIT_FROM: published weights as a folder with safetensors, config.json and tokenizer.json.

A path is a folder on the shared file system, such as an export of titan; s3://BUCKET/FOLDER is a folder of a
bucket. Anything else is a repository of the Hugging Face hub (trainkit.data.hub). Downloads are kept in
DATA_DIR/models/.
"""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from trainkit.data import hub
from trainkit.data.dataset_bucket import BucketError, download_folder
from trainkit.data.fetch import FetchError
from trainkit.data.shards import ShardError

CONFIG, TOKENIZER = "config.json", "tokenizer.json"
# Weights in other formats, pictures and what is in folders are not downloaded.
PATTERNS = ["*.safetensors", "*.json", "*.jinja", "tokenizer*", "LICENSE*"]
# Files that are downloaded at the same time.
CONNECTIONS = 8
STAMP = ".revision"
FOLDERS = ("/", "./", "../", "~")
"""Begins of the path of a folder."""
BUCKET = re.compile(r"s3://([\w.-]+/[^@]+?)/?")
REPOSITORY = re.compile(r"([\w.-]+/[\w.-]+)(?:@(.+))?")


class WeightsError(ShardError):
    """An error in the weights: what is wrong and how to fix it, in one sentence."""


def check_name(init_from: str) -> None:
    """Check the form of INIT_FROM, without a look at what it names; an empty one is random weights.

    Raises:
        WeightsError: it names no weights.
    """
    named = init_from.startswith(FOLDERS) or BUCKET.fullmatch(init_from) or REPOSITORY.fullmatch(init_from)
    if init_from and not named:
        raise WeightsError(
            f'INIT_FROM is "{init_from}"; allowed: ORGANISATION/NAME or ORGANISATION/NAME@REVISION of the '
            "Hugging Face hub, the path of a folder, s3://BUCKET/FOLDER, or nothing for random weights."
        )


def find_weights(init_from: str, *, data: Path) -> Path | None:
    """Return the folder of the weights, which is downloaded if necessary; None for random weights.

    Raises:
        WeightsError: they are not available.
    """
    check_name(init_from)
    if not init_from:
        return None
    if init_from.startswith(FOLDERS):
        return _checked(Path(init_from).expanduser().absolute(), init_from)
    if bucket := BUCKET.fullmatch(init_from):
        folder = data / "models" / f"s3--{bucket[1].replace('/', '--')}"
        if not (folder / STAMP).is_file():
            _copy(f"s3://{bucket[1]}", folder)
            _checked(folder, init_from)
            (folder / STAMP).touch()
        return _checked(folder, init_from)
    repository, _, revision = init_from.partition("@")
    folder = data / "models" / init_from.replace("/", "--")
    if not (folder / STAMP).is_file():
        _download(repository, revision, folder)
    return _checked(folder, init_from)


def config_of(weights: Path) -> dict[str, Any]:
    """Read config.json of a folder of weights."""
    found: dict[str, Any] = json.loads((weights / CONFIG).read_text(encoding="utf-8"))
    return found


def _copy(url: str, folder: Path) -> None:
    """Copy a folder of a bucket."""
    print(f"weights: copying {url} into {folder}")
    try:
        download_folder(url, folder, patterns=PATTERNS)
    except BucketError as error:
        raise WeightsError(
            f"{url} cannot be copied ({error}): compare the address; nodes read the cluster's bucket, "
            "and the buckets of -c read_buckets."
        ) from error


def _download(repository: str, revision: str, folder: Path) -> None:
    """Download a repository; the stamp is written last."""
    files: list[hub.HubFile] = []
    try:
        commit = hub.commit_of("models", repository, revision or "main")
        listed = hub.list_files("models", repository, commit)
        files = [file for file in listed if any(fnmatch(file.path, pattern) for pattern in PATTERNS)]
        size = sum(file.size_bytes for file in files)
        print(f"weights: downloading {repository} ({size / 1e6:,.0f} MB) into {folder}")
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            fetched = pool.map(lambda file: hub.fetch(file, folder / file.path), files)
            for number, file in enumerate(fetched, start=1):
                print(f"weights: {number} of {len(files)} files, {file.name}")
    except FetchError as error:
        asked = f"{repository}@{revision}" if revision and not files else repository
        raise WeightsError(_refusal(asked, error.reason, is_listed=bool(files))) from error
    (folder / STAMP).write_text(f"{commit}\n", encoding="utf-8")


def _refusal(repository: str, reason: str, *, is_listed: bool) -> str:
    """Return what is wrong with a download, and how to fix it. The hub lists gated repositories, too."""
    if not re.search(r"error: 40[134]\b", reason):
        return (
            f"{repository} cannot be downloaded ({reason}): give the nodes access to the hub (NAT, or "
            "HF_ENDPOINT), or copy it to the shared file system and give INIT_FROM=/FOLDER."
        )
    if is_listed:
        return (
            f"{repository} is gated: accept its terms on its page on the Hugging Face hub, and submit again "
            "with a token (trainctl secret set HF_TOKEN, and --env HF_TOKEN=file:.training-cluster/HF_TOKEN)."
        )
    return (
        f"the Hugging Face hub has no {repository} that this token may see: compare the name, or give "
        "HF_TOKEN."
    )


def _checked(folder: Path, init_from: str) -> Path:
    lacking = [name for name in (CONFIG, TOKENIZER) if not (folder / name).is_file()]
    if not any(folder.glob("*.safetensors")):
        lacking.append("*.safetensors")
    if lacking:
        raise WeightsError(
            f"INIT_FROM={init_from}: {folder} has no {', '.join(lacking)}: give a folder or a name on the "
            "hub that has them."
        )
    return folder
