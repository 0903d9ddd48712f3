"""Chats for TASK=sft: DATA_DIR/raw/*.jsonl, checked and split into train.jsonl and val.jsonl.

A line is an object with "messages" (one of the user and one of the assistant), or with "prompt" and
"completion". torchtitan 0.3.0 trains on one question and one answer; it masks the question's tokens.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from trainkit.data.shards import ShardError
from trainkit.run.files import whole_file

ROLES = ["user", "assistant"]


def prepare_chats(files: Sequence[Path], data: Path, fingerprint: str, *, validation_every: int) -> Path:
    """Write the two files, unless they exist; return their folder.

    Raises:
        ShardError: there is no chat, or a line is not a chat.
    """
    files = [file for file in files if file.suffix == ".jsonl"]
    if not files:
        raise ShardError(f"there are no chats: put *.jsonl into {data / 'raw'}.")
    name = hashlib.sha256(f"{fingerprint} {validation_every}".encode()).hexdigest()[:12]
    folder = data / f"chats-{name}"
    if (folder / "train.jsonl").is_file():
        print(f"data: {folder} is there")
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    counts = {True: 0, False: 0}
    with whole_file(folder / "train.jsonl") as train, whole_file(folder / "val.jsonl") as val:
        for number, messages in enumerate(chat for file in files for chat in read_chats(file)):
            is_validation = number % validation_every == 0
            (val if is_validation else train).write(json.dumps({"messages": messages}).encode() + b"\n")
            counts[is_validation] += 1
    print(f"data: {folder} made: {counts[False]:,} chats to train on, {counts[True]:,} for validation")
    return folder


def read_chats(file: Path) -> Iterator[list[dict[str, str]]]:
    """Read the chats of a file.

    Raises:
        ShardError: a line is not a chat.
    """
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                yield messages_of(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise ShardError(
                    f'{file}, line {number}: not a chat ({error!r}): give {{"messages": [{{"role": "user", '
                    '"content": ...}, {"role": "assistant", "content": ...}]} or {"prompt": ..., '
                    '"completion": ...}.'
                ) from error


def messages_of(row: dict[str, Any]) -> list[dict[str, str]]:
    """Return question and answer of a row. Raises ValueError, KeyError or TypeError if it has none."""
    if "messages" in row:
        messages = [{"role": str(each["role"]), "content": each["content"]} for each in row["messages"]]
    else:
        messages = [
            {"role": role, "content": row[name]}
            for role, name in zip(ROLES, ("prompt", "completion"), strict=True)
        ]
    if [message["role"] for message in messages] != ROLES:
        raise ValueError(f"its roles are {[message['role'] for message in messages]}, not {ROLES}")
    if not all(isinstance(message["content"], str) and message["content"] for message in messages):
        raise ValueError("a content is empty or not text")
    return messages
