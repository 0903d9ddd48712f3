"""NVIDIA's published GPT-2 345M: fetched from NGC, one file of its zip."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

from settings import published_file
from trainkit.data.dataset_bucket import DatasetBucket
from trainkit.data.fetch import ensure_file
from trainkit.data.shards import ShardError
from trainkit.run.files import sync

NAME = "megatron-345m"
ZIP = "megatron_lm_345m_v0.0.zip"
URL = "https://api.ngc.nvidia.com/v2/models/nvidia/megatron_lm_345m/versions/v0.0/zip"
MEMBER = "model_optim_rng.pt"


def check(init_from: str) -> None:
    """Check INIT_FROM as far as possible without a download.

    Raises:
        ShardError: `init_from` names nothing.
    """
    if init_from not in {"scratch", NAME} and not Path(init_from).is_file():
        raise ShardError(f"INIT_FROM is {init_from}: give scratch, {NAME}, or such a file {MEMBER}.")


def have(data: Path, bucket: DatasetBucket | None) -> None:
    """Ensure that the checkpoint exists below DATA_DIR/models, from the bucket or from NGC (NGC_345M_URL).

    Its checksum is not published, so only the zip's own checksums reveal damage.

    Raises:
        ShardError: it cannot be downloaded, or is not such a zip.
    """
    file = published_file(data)
    if file.is_file():
        return
    archive = data / "models" / ZIP
    ensure_file(archive, url=os.environ.get("NGC_345M_URL") or URL, key=f"models/{ZIP}", bucket=bucket)
    partial = file.with_name(f".{file.name}.partial")
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with zipfile.ZipFile(archive) as opened:
            member = next((name for name in opened.namelist() if name.endswith(MEMBER)), None)
            if member is None:
                raise ShardError(f"{archive} has no {MEMBER}: delete it, and put the right file there.")
            with opened.open(member) as source, partial.open("wb") as out:
                shutil.copyfileobj(source, out)
    except zipfile.BadZipFile as error:
        raise ShardError(f"{archive} is not a complete zip ({error}): delete it and submit again.") from error
    sync(partial)
    partial.replace(file)
