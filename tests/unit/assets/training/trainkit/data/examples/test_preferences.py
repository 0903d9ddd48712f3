"""Preference pairs: trl's forms read, two examples of one sequence, and numbered pairs of any rank."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from trainkit.data.documents import documents_of, pieces_of
from trainkit.data.examples import chats, preferences
from trainkit.data.examples.preferences import Pairs, pair_of
from trainkit.data.order import Order
from trainkit.data.prepare_tokens import prepare
from trainkit.data.rows import TEXTS, Rows
from trainkit.data.shards import ShardError
from trainkit.data.tokenize_unit import Encode, Recipe

END = 256


def said(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


ASKED, GOOD, BAD = said("user", "q"), said("assistant", "yes"), said("assistant", "no")


def found(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(json.loads(pair_of(row))[name] for name in ("prompt", "chosen", "rejected"))


def test_each_form_of_trl_is_a_pair() -> None:
    conversation = ([ASKED], [GOOD], [BAD])
    both = {"chosen": [ASKED, GOOD], "rejected": [ASKED, BAD]}
    assert found({"prompt": [ASKED], "chosen": [GOOD], "rejected": [BAD]}) == conversation
    assert found(both) == conversation
    assert found({"prompt": "q", **both}) == conversation, "as of ultrafeedback_binarized"
    assert found({"prompt": "q", "chosen": [GOOD], "rejected": [BAD]}) == conversation
    assert found({"prompt": "q", "chosen": "yes", "rejected": "no"}) == conversation
    assert found({"chosen": "Sky: is blue", "rejected": "Sky: is green"}) == ("Sky: is", " blue", " green")


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": "q", "chosen": "yes"},
        {"prompt": "q", "chosen": "yes", "rejected": ""},
        {"chosen": "same", "rejected": "same"},
        {"chosen": "text", "rejected": [GOOD]},
        {"chosen": [ASKED, GOOD], "rejected": [ASKED]},
    ],
)
def test_a_row_that_is_no_pair_is_named(tmp_path: Path, row: dict[str, Any]) -> None:
    with pytest.raises(
        ShardError, match=r"byte 0: this line is not a preference pair, .* of texts or messages \("
    ):
        list(read(tmp_path, [row]))


def read(folder: Path, rows: Sequence[dict[str, Any]], kind: Rows = preferences.PAIRS) -> Any:
    file = folder / "a.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return documents_of(pieces_of(file, folder)[0], rows=kind)


def test_other_trainings_name_a_pair(tmp_path: Path) -> None:
    pair = {"prompt": "q", "chosen": "yes", "rejected": "no"}
    for kind in (chats.CHATS, TEXTS):
        with pytest.raises(ShardError, match="but a preference pair, which no training here takes: give"):
            list(read(tmp_path, [pair], kind))
    assert list(read(tmp_path, [pair | {"messages": [ASKED, GOOD]}], chats.CHATS)), (
        "of which it takes the chat"
    )


def render(messages: Sequence[dict[str, Any]], *, add_generation_prompt: bool = False, **_: Any) -> str:
    return "".join(f"<{m['role'][0]}>{m['content']}\n" for m in messages) + "<a>" * add_generation_prompt


def test_both_texts_have_the_prompt_and_an_answer(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text('{"bos_token": "^"}')
    encoder = preferences.PairEncoder(tmp_path)

    def answers(row: dict[str, Any]) -> list[tuple[str, str]]:
        texts = encoder.examples(render, json.loads(pair_of(row)))
        return [(text[:a], text[a:b]) for text, ((a, b),) in texts]

    assert answers({"chosen": [ASKED, GOOD], "rejected": [ASKED, BAD]}) == [
        ("<u>q\n<a>", "yes"),
        ("<u>q\n<a>", "no"),
    ]
    assert answers({"chosen": "A: b", "rejected": "A: c"}) == [("^A:", " b"), ("^A:", " c")]


@dataclass(frozen=True)
class Bytes(preferences.PairEncoder):
    """An encoder for tests: a token for each byte."""

    def load(self) -> Encode:
        def ids_of(text: str) -> list[int]:
            ids = list[int]()
            for each, spans in self.examples(render, json.loads(text)):
                places = [(n, n + 1) for n in range(len(each))]
                ids += chats.with_bits(SimpleNamespace(ids=list(each.encode()), offsets=places), spans, END)
            return ids

        return lambda texts: [ids_of(text) for text in texts]


def read_pairs(unit: Any) -> Any:
    return documents_of(unit, rows=preferences.PAIRS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Shards of 24 pairs in two files, in sequences of 24 tokens, and of two that are longer."""
    units = []
    for name in "ab":
        file = tmp_path / f"{name}.jsonl"
        rows = [
            {"prompt": f"{n % 10}", "chosen": name * (1 + n % 3), "rejected": f"{name}o"} for n in range(12)
        ]
        rows.insert(5, {"prompt": "long", "chosen": "c", "rejected": "r" * 9})
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        units += [replace(piece, split="train") for piece in pieces_of(file, tmp_path)]
    shards = preferences.Preferences(
        data=tmp_path, name="raw", vocab_size=0, validation_every=5, weights=tmp_path, seq_len=24
    )
    recipe = Recipe(
        folder=tmp_path / "shards",
        units=tuple(units),
        read=read_pairs,
        encoder=Bytes(tmp_path),
        vocab_size=300,
        tokenizer_sha256="",
        source={"kind": shards.kind},
        validation_every=20,
        pack=24,
        padding=7,
        group=shards.group,
    )
    manifest = prepare(recipe, workers=1)
    assert shards.counts(manifest) == (
        "tokens: train 528 (24 pairs), val 0 (0 pairs); the longest has 34; 2 longer than SEQ_LEN=24 are "
        "left out"
    )
    assert shards.folder.name.startswith("raw-pairs-")
    assert manifest.sequences("train", 24) == 24, "a pair is in one sequence"
    return recipe.folder


@pytest.mark.slow
def test_pairs_are_read_by_number(folder: Path) -> None:
    pairs = Pairs(folder, "train")
    assert (len(pairs), len(Pairs(folder, "val"))) == (24, 0)
    for number, name in ((0, "a"), (11, "a"), (14, "b"), (23, "b")):
        n = number % 12
        assert pairs[number] == {
            "prompt_ids": [*f"<u>{n % 10}\n<a>".encode()],
            "chosen_ids": [*(name * (1 + n % 3)).encode(), END],
            "rejected_ids": [*f"{name}o".encode(), END],
        }
    with pytest.raises(IndexError, match="pair 24 of 24"):
        pairs[24]
    # Three ranks take two steps, two ranks the rest of the epoch.
    order = Order(sequences=len(pairs), seed=1)
    taken = [n for step in (0, 6) for rank in range(3) for n in order.batch(step, size=2, rank=rank, ranks=3)]
    taken += [
        n for step in (12, 18) for rank in range(2) for n in order.batch(step, size=3, rank=rank, ranks=2)
    ]
    assert sorted(taken) == list(range(24))


def test_shards_of_others_have_no_pairs(tmp_path: Path) -> None:
    from trainkit.data.shards import Manifest, write_manifest  # noqa: PLC0415

    splits: dict[str, Any] = {"train": (), "val": ()}
    write_manifest(
        tmp_path, Manifest(dtype="uint32", vocab_size=9, tokenizer_sha256="", source={}, splits=splits)
    )
    with pytest.raises(ShardError, match="has no preference pairs: give the folder"):
        Pairs(tmp_path, "train")
