"""Chats for fine-tuning: checked, split, and a wrong line named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.assets.training.workload_modules import Import, workload_on_the_path


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    with workload_on_the_path(monkeypatch, "titan") as load:
        yield load


def test_chats_are_checked_and_split(load: Import, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    rows = [{"prompt": f"q{n}", "completion": f"a{n}"} for n in range(39)]
    rows.append({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]})  # type: ignore[dict-item]
    file.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    prepare_chats = load("trainkit.data.chats").prepare_chats
    folder = prepare_chats([file], tmp_path, "first", validation_every=20)
    train, val = ((folder / name).read_text().splitlines() for name in ("train.jsonl", "val.jsonl"))
    assert (len(train), len(val)) == (38, 2)
    assert json.loads(val[0])["messages"][1] == {"role": "assistant", "content": "a0"}
    assert prepare_chats([file], tmp_path, "second", validation_every=20) != folder


@pytest.mark.parametrize(
    "line",
    [
        "no json",
        "[1]",
        '{"text": "a document"}',
        '{"prompt": "q", "completion": ""}',
        '{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]}',
        '{"messages": [{"role": "user", "content": "q"}]}',
    ],
)
def test_a_line_that_is_no_chat_is_named_and_nothing_is_left(load: Import, tmp_path: Path, line: str) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"prompt": "q", "completion": "a"}\n' + line + "\n")
    with pytest.raises(load("trainkit.data.shards").ShardError, match=r"a\.jsonl, line 2: not a chat"):
        load("trainkit.data.chats").prepare_chats([file], tmp_path, "x", validation_every=20)
    assert not list(tmp_path.glob("chats-*/*.jsonl"))
