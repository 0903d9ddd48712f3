"""Chats for fine-tuning: answers found by a template, masked, packed whole, and a wrong row named."""

import array
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from trainkit.data.documents import documents_of, pieces_of
from trainkit.data.examples import chats
from trainkit.data.prepare_tokens import prepare
from trainkit.data.shards import (
    FIRST,
    ID_BITS,
    TRAINED,
    Manifest,
    Shard,
    ShardError,
    Tokens,
    check_sequences,
)
from trainkit.data.tokenize_unit import Encode, Recipe

END = 256
QUESTION, ANSWER, TOOL = ({"role": role, "content": role[0]} for role in ("user", "assistant", "tool"))


def plain(messages: Sequence[dict[str, Any]], *, add_generation_prompt: bool = False) -> str:
    """Render as ChatML does."""
    return (
        "".join(f"<{m['role']}>{m['content']}.\n" for m in messages) + "<assistant>" * add_generation_prompt
    )


def thinking(messages: Sequence[dict[str, Any]], *, add_generation_prompt: bool = False) -> str:
    """Render as Qwen3 does: the thought is written in the last answer alone."""
    last = len(messages) - 1
    told = [
        m | {"content": f"(think){m['content']}"} if at == last and m["role"] == "assistant" else m
        for at, m in enumerate(messages)
    ]
    return plain(told, add_generation_prompt=add_generation_prompt)


def answers(render: Any, messages: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Return what is trained on in each example."""
    return [[text[a:b] for a, b in spans] for text, spans in chats.examples_of(render, messages)]


def test_each_answer_is_trained_on_alone() -> None:
    system = {"role": "system", "content": "s"}
    assert answers(plain, [QUESTION, ANSWER]) == [["a."]]
    assert answers(plain, [system, QUESTION, ANSWER, TOOL, ANSWER, QUESTION]) == [["a.", "a."]]
    assert answers(thinking, [QUESTION, ANSWER, QUESTION, ANSWER]) == [["(think)a."], ["(think)a."]]
    *_, (text, _) = chats.examples_of(thinking, [QUESTION, ANSWER, QUESTION, ANSWER])
    assert text == "<user>u.\n<assistant>a.\n<user>u.\n<assistant>(think)a."


def test_bits_mark_examples_and_answers() -> None:
    text = "qq.aa"
    encoded = SimpleNamespace(ids=list(text.encode()), offsets=[(n, n + 1) for n in range(len(text))])
    found = chats.with_bits(encoded, [(3, 5)], END)
    assert bytes(each & ID_BITS for each in found[:-1]) == text.encode()
    assert [bool(each & FIRST) for each in found] == [True, *[False] * 5]
    # Each has the bit whose next id is an answer's, or the end of text.
    assert [bool(each & TRAINED) for each in found] == [False, False, True, True, True, False]
    assert found[-1] == END
    encoded.ids[-1] = END
    assert len(chats.with_bits(encoded, [(3, 5)], END)) == 5, "the template has an end of its own"


@dataclass(frozen=True)
class Answers:
    """An encoder for tests: as many tokens as a chat's answer says."""

    def load(self) -> Encode:
        def encode(texts: list[str]) -> list[Sequence[int]]:
            lengths = [int(json.loads(text)["messages"][1]["content"]) for text in texts]
            return [array.array("I", [n | FIRST, *[n | TRAINED] * (n - 1)]) for n in lengths]

        return encode


def rows(numbers: Sequence[int]) -> str:
    return "".join(json.dumps({"prompt": "q", "completion": str(n)}) + "\n" for n in numbers)


def read(unit: Any) -> Any:
    return documents_of(unit, rows=chats.CHATS)


@pytest.mark.slow
def test_chats_are_packed_whole_or_dropped(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(rows([4, 30, 5, 9, 2]))
    recipe = Recipe(
        folder=tmp_path / "shards",
        units=tuple(replace(piece, split="train") for piece in pieces_of(file, tmp_path)),
        read=read,
        encoder=Answers(),
        vocab_size=300,
        tokenizer_sha256="",
        source={},
        validation_every=20,
        pack=9,
        padding=7,
    )
    manifest = prepare(recipe, workers=1)
    assert (manifest.sequences("train", 9), manifest.sequences("val", 9)) == (3, 0)
    assert (manifest.documents("train"), manifest.dropped, manifest.longest) == (4, 1, 30)
    tokens = Tokens(recipe.folder, manifest, "train")
    found = tokens.windows([0, 9, 18], 9)
    assert (found & ID_BITS).tolist() == [[4] * 4 + [5] * 5, [9] * 9, [2] * 2 + [7] * 7]
    assert np.flatnonzero(found & FIRST).tolist() == [0, 4, 9, 18, 20]
    assert not (found[2, 2:] & TRAINED).any()


def shards(train: int, val: int, *, packed: int = 64, dropped: int = 0, longest: int = 60) -> Manifest:
    """A manifest of some packed sequences."""
    splits: dict[str, tuple[Shard, ...]] = {
        split: (
            Shard(f"{split}-00000.bin", count * packed, "", count, longest, dropped, count * packed // 4),
        )
        if count
        else ()
        for split, count in (("train", train), ("val", val))
    }
    if dropped and not train:
        splits["train"] = (Shard("train-00000.bin", 0, "", 0, longest, dropped),)
    return Manifest(
        dtype="uint32",
        vocab_size=300,
        tokenizer_sha256="",
        source={"validation_every": 20},
        splits=splits,
        packed=packed,
    )


def test_fewer_sequences_than_ranks_are_refused(tmp_path: Path) -> None:
    for manifest, ways in (
        (shards(30, 0), "a smaller VALIDATION_EVERY than 20, EVAL_SEQUENCES=0 (no validation), more text."),
        (shards(0, 0, dropped=30, longest=400), "SEQ_LEN=512 (all fit), more text."),
        (shards(1, 1), "fewer nodes, more text."),
        (shards(1, 1, packed=4096), "fewer nodes, SEQ_LEN=960, more text."),
    ):
        length = manifest.packed
        with pytest.raises(ShardError) as caught:
            check_sequences(tmp_path, manifest, length, ranks=3, validates=True)
        assert str(caught.value).endswith(f": give {ways}")
    check_sequences(tmp_path, shards(3, 1), 64, ranks=3, validates=True)
    check_sequences(tmp_path, shards(3, 0), 64, ranks=3, validates=False)


def test_names_without_a_value_are_left_out() -> None:
    asked = {"role": "assistant", "content": None, "tool_calls": [{"name": "f"}], "name": None}
    found = json.loads(chats.chat_of({"messages": [QUESTION, asked], "tools": None, "prompt": None}))
    assert found == {"messages": [QUESTION, {n: v for n, v in asked.items() if n != "name"}], "tools": None}


def test_a_line_that_is_no_chat_is_named(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    good = rows([1])
    for line in (
        "no json",
        "[1]",
        '{"text": "a document"}',
        '{"prompt": "q", "completion": ""}',
        '{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]}',
        '{"messages": [{"role": "user", "content": "q"}]}',
        '{"messages": [{"role": "user"}, {"role": "assistant", "content": "a"}]}',
        '{"messages": [{"content": "q"}, {"role": "assistant", "content": "a"}]}',
    ):
        file.write_text(good + line + "\n")
        with pytest.raises(ShardError, match=rf"a\.jsonl, byte {len(good)}: this line is not a chat"):
            list(read(pieces_of(file, tmp_path)[0]))


def test_a_template_renders_roles_and_tools(tmp_path: Path) -> None:
    template = (
        "{{ bos_token }}{% for tool in tools or [] %}[{{ tool | tojson }}]{% endfor %}"
        "{% for m in messages %}{% if m.role == 'robot' %}{{ raise_exception('no robots') }}{% endif %}"
        "<{{ m.role }}>{%- generation %} {{ m.content }}{% endgeneration %}{% endfor %}"
    )
    config = {"bos_token": {"content": "<s>"}, "chat_template": [{"name": "default", "template": template}]}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    encoder = chats.ChatEncoder(tmp_path)
    render = encoder.renderer()
    assert render(messages=[QUESTION], tools=[{"é": 1}]) == '<s>[{"é": 1}]<user> u'
    robot = json.dumps({"messages": [{"role": "robot", "content": "r"}, ANSWER], "tools": None})
    with pytest.raises(ShardError, match=r"refuses a chat \(no robots\): .*robot"):
        encoder._examples(render, robot)
    (tmp_path / "tokenizer_config.json").unlink()
    with pytest.raises(ShardError, match=r"has no template of chats: take an instruction-tuned model"):
        encoder.renderer()
