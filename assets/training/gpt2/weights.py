"""INIT_FROM: the weights that a run begins with, as a folder that transformers reads.

`scratch` means random weights. A path is a folder on the shared file system, such as a checkpoint of gpt2.
Anything else is a name on the Hugging Face hub, looked for in DATA_DIR/models/, the cluster's bucket, and the
hub.
"""

from __future__ import annotations

import re
from pathlib import Path

from trainkit.data import hub
from trainkit.data.dataset_bucket import BucketError, DatasetBucket
from trainkit.data.fetch import FetchError
from trainkit.data.hf_weights import FOLDERS, WeightsError

SCRATCH = "scratch"
FILES = ("config.json", "model.safetensors", "tokenizer.json")
# OpenAI's four sizes, by their usual names.
ORGANISATION = "openai-community"
PUBLISHED = ("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl")
# The revision of each repository: its main when this was written.
REVISIONS = {"gpt2": "607a30d783dfa663caf39e06633721c8d4cfcd7e"}


def find_weights(init_from: str, *, data: Path, bucket: DatasetBucket | None) -> Path | None:
    """Return the folder of the weights, which is downloaded if necessary; None for random weights.

    Raises:
        WeightsError: they are not available.
    """
    if init_from == SCRATCH:
        return None
    if init_from.startswith(FOLDERS):
        folder = Path(init_from).expanduser().absolute()
        if lacking := _lacking(folder):
            raise WeightsError(
                f"INIT_FROM={init_from}: {folder} has no {lacking[0]}; a folder of weights has "
                f"{', '.join(FILES)}."
            )
        return folder
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", init_from):
        raise WeightsError(
            f'INIT_FROM is "{init_from}"; allowed: {SCRATCH}, a name on the Hugging Face hub such as '
            f"{PUBLISHED[0]}, or the path of a folder."
        )
    key = f"models/{init_from.replace('/', '--')}"
    folder = data / key
    if not _lacking(folder):
        return folder
    tried = [_from_bucket(key, folder, bucket)] if bucket else []
    if _lacking(folder):
        tried.append(_from_hub(init_from, folder))
    if _lacking(folder):
        upload = bucket.url(key) if bucket else f"{folder}"
        raise WeightsError(
            f"the weights {init_from} are not available: {'; '.join(tried)}. Put {', '.join(FILES)} there "
            f"yourself (aws s3 cp --recursive FOLDER {upload}/), or train from random weights: "
            f"INIT_FROM={SCRATCH}."
        )
    return folder


def _lacking(folder: Path) -> list[str]:
    return [name for name in FILES if not (folder / name).is_file()]


def _from_bucket(key: str, folder: Path, bucket: DatasetBucket) -> str:
    """Download from the bucket if it has all files; otherwise return the reason."""
    try:
        for name in FILES:
            if not bucket.head(f"{key}/{name}"):
                return f"{bucket.url(key)}/{name} does not exist"
        for name in FILES:
            bucket.download(f"{key}/{name}", folder / name)
    except BucketError as error:
        return str(error)
    return ""


def _from_hub(name: str, folder: Path) -> str:
    """Download from the hub; return the reason if that fails."""
    repository = f"{ORGANISATION}/{name}" if name in PUBLISHED else name
    revision = REVISIONS.get(name, "main")
    try:
        listed = {each.path: each for each in hub.list_files("models", repository, revision)}
        if missing := [each for each in FILES if each not in listed]:
            return f"{hub.endpoint()}/{repository} has no {missing[0]}"
        size = sum(listed[each].size_bytes for each in FILES)
        print(f"weights: fetching {repository} ({size / 1e6:,.0f} MB) into {folder}")
        for each in FILES:
            hub.fetch(listed[each], folder / each)
    except FetchError as error:
        return error.reason
    return ""
