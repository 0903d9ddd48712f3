"""Preference pairs as packed token shards, and their reader. No workload here trains on them yet.

A line of *.jsonl, or a row of *.parquet, has "chosen" and "rejected" in one of the forms of trl: messages, or
the text of an answer; "prompt" has what precedes both, or both begin with it. A pair is two examples of one
sequence, each with its prompt, the chosen one first. The mask of the loss has the tokens of the answers.
"""

from __future__ import annotations

import bisect
import itertools
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from trainkit.data.examples.chats import ANSWERS, ChatEncoder, Chats, Render, Spans, checked
from trainkit.data.rows import Rows
from trainkit.data.shards import FIRST, ID_BITS, TRAINED, ShardError, Tokens, read_manifest

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ids = npt.NDArray[np.int64]

KIND = "pairs"


@dataclass(frozen=True, kw_only=True)
class Preferences(Chats):
    """The shards of the preference pairs of one text, in sequences of one length."""

    # Each pair has its prompt twice.
    shard_bytes_a_text_byte: ClassVar[float] = 3.0
    kind: ClassVar[str] = KIND
    called: ClassVar[str] = KIND
    group: ClassVar[int] = 2

    @property
    def rows(self) -> Rows:
        """Rules for the rows of the files."""
        return PAIRS

    @property
    def encoder(self) -> ChatEncoder:
        """The encoder of the rows."""
        return PairEncoder(self.weights)


def pair_of(row: dict[str, Any]) -> str:
    """Return a row's prompt, both answers and tools as JSON; raises what Rows allows if it is no pair."""
    prompt, answers = row.get("prompt"), [row["chosen"], row["rejected"]]
    if all(isinstance(each, str) for each in answers):
        if isinstance(prompt, str):  # a chat of one turn, as "prompt" and "completion" are
            prompt = checked([{"role": "user", "content": prompt}])
            answers = [checked([{"role": ANSWERS, "content": each}]) for each in answers]
        else:
            common = os.path.commonprefix(answers)  # noqa: RUF071 (of characters)
            # As trl does: most tokens of words begin with their space.
            prompt = common.removesuffix(" ")
            answers = [each.removeprefix(prompt) for each in answers]
    else:
        answers = [checked(each) for each in answers]
        if not isinstance(prompt, list):
            both = zip(*answers, strict=False)
            turns = sum(1 for _ in itertools.takewhile(lambda each: each[0] == each[1], both))
            asked = [{"role": "user", "content": prompt}] if prompt and not turns else []
            prompt, answers = [*asked, *answers[0][:turns]], [each[turns:] for each in answers]
        prompt = checked(prompt)
    if not all(answers):
        raise ValueError("an answer is empty, or both are the same")
    return json.dumps(
        {"prompt": prompt, "chosen": answers[0], "rejected": answers[1], "tools": row.get("tools") or None}
    )


PAIRS = Rows(
    columns=("chosen", "rejected", "prompt", "tools"),
    wanted='a preference pair, {"prompt": ..., "chosen": ..., "rejected": ...} of texts or messages',
    document=pair_of,
)


@dataclass(frozen=True)
class PairEncoder(ChatEncoder):
    """An encoder of pairs, created in each process."""

    def examples(self, render: Render, row: dict[str, Any]) -> Iterator[tuple[str, Spans]]:
        """Yield the chosen text and the rejected one, each with the place of its answer."""
        prompt = row["prompt"]
        for answer in (row["chosen"], row["rejected"]):
            if isinstance(prompt, str):
                before = f"{self._named('bos_token')}{prompt}"
                text = before + answer
            else:
                before = render(messages=prompt, add_generation_prompt=True)
                text = render(messages=prompt + answer).rstrip("\n")
            begin = os.path.commonprefix([before, text])  # noqa: RUF071 (of characters)
            yield text, [(len(begin), len(text))]


class Pairs:
    """The pairs of one split by number, with the names that trl's DataCollatorForPreference reads.

    An `Order` of as many sequences gives each rank its numbers, on any number of ranks after a resume. To
    find its examples, a shard is read once, when the first of its pairs is needed.
    """

    def __init__(self, folder: Path, split: str) -> None:
        manifest = read_manifest(folder)
        if manifest.source.get("kind") != KIND:
            raise ShardError(f"{folder} has no preference pairs: give the folder of a text that has some.")
        shards = [shard for shard in manifest.splits[split] if shard.tokens]
        self._tokens = Tokens(folder, manifest, split)
        self._ends = list(itertools.accumulate(shard.documents for shard in shards))
        self._offsets = [0, *itertools.accumulate(shard.tokens for shard in shards)]
        self._found: dict[int, Ids] = {}

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, number: int) -> dict[str, list[int]]:
        """Return `prompt_ids`, and behind them `chosen_ids` and `rejected_ids`.

        Raises:
            IndexError: there is no such pair.
        """
        if not 0 <= number < len(self):
            raise IndexError(f"pair {number} of {len(self)}")
        at = bisect.bisect_right(self._ends, number)
        first = 2 * (number - (self._ends[at - 1] if at else 0))
        chosen, rejected = (self._tokens.window(*each) for each in self._examples(at)[first : first + 2])
        # A token that ends the prompt and begins an answer is not the same in both.
        ids = [each & ID_BITS for each in (chosen, rejected)]
        shorter = min(map(len, ids))
        differs = (ids[0][:shorter] != ids[1][:shorter]).nonzero()[0]
        answers = (int((each & TRAINED != 0).argmax()) + 1 for each in (chosen, rejected))
        prompt = min(*answers, *differs[:1].tolist())
        return {
            "prompt_ids": ids[0][:prompt].tolist(),
            "chosen_ids": ids[0][prompt:].tolist(),
            "rejected_ids": ids[1][prompt:].tolist(),
        }

    def _examples(self, at: int) -> Ids:
        """Return the first token and the length of each example of a shard, (examples, 2)."""
        import numpy as np  # noqa: PLC0415 (the preparation needs no package here)

        if at not in self._found:
            begin, end = self._offsets[at : at + 2]
            ids = self._tokens.window(begin, end - begin)
            firsts = np.flatnonzero(ids & FIRST)
            lengths = np.diff(firsts, append=len(ids))
            # Padding trains nothing.
            is_example = np.logical_or.reduceat(ids & TRAINED != 0, firsts)
            self._found[at] = np.stack([begin + firsts, lengths], axis=1)[is_example]
        return self._found[at]
