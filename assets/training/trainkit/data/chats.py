"""Chats for TASK=sft: DATA_DIR/raw/*.jsonl, checked, counted, and split into train.jsonl and val.jsonl.

A line is an object with "messages" (one of the user and one of the assistant), or with "prompt" and
"completion". torchtitan 0.3.0 trains on one question and one answer; it masks the question's tokens. Its
loader drops chats that are longer than a sequence without a message, and loops forever if no other is left.
These are left out here.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainkit.data.shards import ShardError
from trainkit.run.files import whole_file, write_whole

ROLES = ["user", "assistant"]
COUNTS = "counts.json"
ROUND = 512
"""Divisor of the SEQ_LEN that a message proposes."""
SHOWN_EVERY = 50_000
"""Chats between two lines of progress; a core tokenizes about a thousand in a second."""
Messages = list[dict[str, str]]
TokensOf = Callable[[Messages], int]


@dataclass(kw_only=True)
class Counts:
    """Numbers of the chats of one text, which COUNTS keeps."""

    train: int = 0
    val: int = 0
    tokens: int = 0
    """Tokens of the chats to train on."""
    sequences: int = 0
    """Sequences that one rank packs from these in an epoch."""
    dropped: int = 0
    longest: int = 0
    """Tokens of the longest chat, a dropped one included."""

    def describe(self, seq_len: int) -> str:
        """Return the counts for the output of the preparation."""
        return (
            f"{self.train:,} chats of {self.tokens:,} tokens to train on, {self.val:,} for validation; "
            f"{self.dropped:,} longer than SEQ_LEN={seq_len} are left out (longest: {self.longest:,} tokens)"
        )


def prepare_chats(
    files: Sequence[Path],
    data: Path,
    fingerprint: str,
    *,
    validation_every: int,
    seq_len: int,
    load_tokenizer: Callable[[], TokensOf],
) -> tuple[Path, Counts]:
    """Write the two files with the chats that fit a sequence, unless they exist; return their folder.

    Args:
        fingerprint: identity of the files and of the tokenizer.
        load_tokenizer: returns a function that counts the tokens of a chat; called only to write the files.

    Raises:
        ShardError: there is no file of chats, or a line is not a chat.
    """
    files = [file for file in files if file.suffix == ".jsonl"]
    if not files:
        raise ShardError(f"there are no chats: put *.jsonl into {data / 'raw'}.")
    name = hashlib.sha256(f"{fingerprint} {validation_every} {seq_len}".encode()).hexdigest()[:12]
    folder = data / f"chats-{name}"
    verb = "is there"
    if not (folder / COUNTS).is_file():
        folder.mkdir(parents=True, exist_ok=True)
        chats = (chat for file in files for chat in read_chats(file))
        made = _write(
            chats, folder, validation_every=validation_every, seq_len=seq_len, tokens_of=load_tokenizer()
        )
        write_whole(folder / COUNTS, json.dumps(dataclasses.asdict(made)) + "\n")
        verb = "made"
    counts = Counts(**json.loads((folder / COUNTS).read_text(encoding="utf-8")))
    print(f"data: {folder} {verb}: {counts.describe(seq_len)}")
    return folder, counts


def _write(
    chats: Iterable[Messages],
    folder: Path,
    *,
    validation_every: int,
    seq_len: int,
    tokens_of: TokensOf,
) -> Counts:
    counts, filled = Counts(), seq_len
    with whole_file(folder / "train.jsonl") as train, whole_file(folder / "val.jsonl") as val:
        for number, messages in enumerate(chats, start=1):
            if number % SHOWN_EVERY == 0:
                print(f"data: {number:,} chats read", flush=True)
            length = tokens_of(messages)
            counts.longest = max(counts.longest, length)
            line = json.dumps({"messages": messages}).encode() + b"\n"
            if length > seq_len:
                counts.dropped += 1
            elif (counts.train + counts.val) % validation_every == 0:
                counts.val += 1
                val.write(line)
            else:
                counts.train += 1
                counts.tokens += length
                train.write(line)
                if filled + length > seq_len:  # a chat that does not fit the rest begins another sequence
                    counts.sequences, filled = counts.sequences + 1, 0
                filled += length
    return counts


def check_ranks(folder: Path, counts: Counts, *, ranks: int, validates: bool, seq_len: int) -> None:
    """Refuse chats of which a data-parallel rank would have none.

    Raises:
        ShardError: a split has fewer chats than there are ranks.
    """
    if counts.train >= ranks and (counts.val >= ranks or not validates):
        return
    ways = [f"SEQ_LEN={-(-counts.longest // ROUND) * ROUND} (all chats fit)"] if counts.dropped else []
    kept = counts.train + counts.val
    if validates and counts.train >= ranks:
        ways.append("EVAL_SEQUENCES=0 (no validation)")
    if validates and kept >= 2 * ranks:
        ways.append(f"VALIDATION_EVERY={kept // ranks}")
    if kept:
        ways.append("fewer nodes")
    both = " and one for validation" if validates else ""
    raise ShardError(
        f"each of the {ranks} data-parallel ranks needs a chat to train on{both}, and {folder} has "
        f"{counts.train} and {counts.val} that fit SEQ_LEN={seq_len}: give {', '.join(ways)} or more chats."
    )


def read_chats(file: Path) -> Iterator[Messages]:
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


def messages_of(row: dict[str, Any]) -> Messages:
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
