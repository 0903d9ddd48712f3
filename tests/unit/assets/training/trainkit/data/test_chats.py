"""Chats for fine-tuning: checked, split, and a wrong line named."""

import json
from pathlib import Path

import pytest
from trainkit.data import chats
from trainkit.data.shards import ShardError


def letters(messages: list[dict[str, str]]) -> int:
    """Count the letters of a chat, in the place of its tokens."""
    return sum(len(each["content"]) for each in messages)


def prepare(file: Path, *, fingerprint: str = "first") -> tuple[Path, chats.Counts]:
    return chats.prepare_chats(
        [file], file.parent, fingerprint, validation_every=20, seq_len=9, load_tokenizer=lambda: letters
    )


def test_chats_are_checked_and_split(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    rows: list[object] = [{"prompt": f"q{n}", "completion": f"a{n}"} for n in range(39)]
    rows.append({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]})
    file.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    folder, _ = prepare(file)
    train, val = ((folder / name).read_text().splitlines() for name in ("train.jsonl", "val.jsonl"))
    assert (len(train), len(val)) == (38, 2)
    assert json.loads(val[0])["messages"][1] == {"role": "assistant", "content": "a0"}
    assert prepare(file, fingerprint="second")[0] != folder


def test_chats_longer_than_a_sequence_are_dropped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.jsonl"
    lengths = [2, 30, 4, 4, 2, 9]  # the first is for validation; 4 and 4, 2, 9 are three sequences of 9
    rows = [{"prompt": "q", "completion": "a" * (length - 1)} for length in lengths]
    file.write_text("\n".join(map(json.dumps, rows)) + "\n")
    folder, counts = prepare(file)
    assert "a" * 29 not in (folder / "train.jsonl").read_text()
    assert (counts.train, counts.val, counts.tokens, counts.sequences) == (4, 1, 19, 3)
    said = "4 chats of 19 tokens to train on, 1 for validation; 1 longer than SEQ_LEN=9 are left out ("
    assert f"made: {said}longest: 30 tokens)" in capsys.readouterr().out
    assert prepare(file) == (folder, counts)
    assert f"is there: {said}" in capsys.readouterr().out


def test_fewer_chats_than_ranks_are_refused(tmp_path: Path) -> None:
    for numbers, ways in (
        ((14, 1, 0), "EVAL_SEQUENCES=0 (no validation), VALIDATION_EVERY=7, fewer nodes or more chats."),
        ((0, 0, 30), "SEQ_LEN=1024 (all chats fit) or more chats."),
        ((1, 1, 0), "fewer nodes or more chats."),
    ):
        train, val, dropped = numbers
        counts = chats.Counts(train=train, val=val, dropped=dropped, longest=720)
        with pytest.raises(ShardError) as caught:
            chats.check_ranks(tmp_path, counts, ranks=2, validates=True, seq_len=64)
        assert str(caught.value).endswith(f"has {train} and {val} that fit SEQ_LEN=64: give {ways}")
        if train >= 2:
            chats.check_ranks(tmp_path, counts, ranks=2, validates=False, seq_len=64)


def test_a_line_that_is_no_chat_is_named(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    for line in (
        "no json",
        "[1]",
        '{"text": "a document"}',
        '{"prompt": "q", "completion": ""}',
        '{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]}',
        '{"messages": [{"role": "user", "content": "q"}]}',
    ):
        file.write_text('{"prompt": "q", "completion": "a"}\n' + line + "\n")
        with pytest.raises(ShardError, match=r"a\.jsonl, line 2: not a chat"):
            prepare(file)
        assert not list(tmp_path.glob("chats-*/*.jsonl"))
