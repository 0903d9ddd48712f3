"""Names of texts in DATA: folders of datasets/, data sets and streams of the hub. Needs no package."""

from __future__ import annotations

import os
import re

from trainkit.data.hub_text import HUB_NAME
from trainkit.data.mixture import MixtureError, parse_mixture
from trainkit.run.run import die

STREAM = "hf:"
"""Prefix of a data set of the Hugging Face hub that is streamed."""


def check_texts(data: str, task: str, *, has_tokenizer: bool) -> None:
    """Die unless DATA names texts that the task takes; streams of the hub are for pretraining alone.

    Args:
        has_tokenizer: True if a tokenizer is given, by itself or with weights.
    """
    if corpus := os.environ.get("CORPUS"):
        die(f"titan takes DATA in the place of CORPUS: give DATA={corpus}, and no CORPUS.")
    try:
        names = [part.name for part in parse_mixture(data)]
    except MixtureError as error:
        die(f"DATA: {error}")
    streams = [name for name in names if name.startswith(STREAM)]
    for name in names:
        pattern = r"hf:(/[^,:]+|[\w.-]+/[\w.-]+(/[\w.-]+)?)" if name in streams else r"\w[\w.-]*"
        if not (re.fullmatch(pattern, name) or HUB_NAME.fullmatch(name)):
            die(
                f'DATA has "{name}"; allowed: raw, machine, the name of a folder of datasets/, or '
                "ORGANISATION/NAME or ORGANISATION/NAME/CONFIGURATION of the Hugging Face hub, with "
                "@REVISION behind it, or with hf: before it as a stream."
            )
    if streams and (streams != names or task == "sft"):
        what = "TASK=sft" if task == "sft" else ", ".join(set(names) - set(streams))
        die(
            f"DATA streams {streams[0]}, which torchtitan cannot mix with {what}: give "
            f"{streams[0].removeprefix(STREAM)}, which is downloaded and prepared once."
        )
    if streams and not has_tokenizer:
        die(
            f"DATA streams {streams[0]}, which torchtitan tokenizes: give INIT_FROM, or a folder with a "
            "tokenizer as TOKENIZER."
        )
    if task == "sft" and "machine" in names:
        die("DATA=machine is text, and TASK=sft needs chats: give the name of a folder of datasets/.")


def address(name: str) -> tuple[str, str | None]:
    """Return repository and configuration of hf:ORGANISATION/NAME[/CONFIGURATION]; hf:/FOLDER has none."""
    place = name.removeprefix(STREAM)
    if place.startswith("/"):
        return place, None
    organisation, repository, *configuration = place.split("/")
    return f"{organisation}/{repository}", next(iter(configuration), None)
