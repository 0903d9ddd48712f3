"""The parts of titan that need no package: settings, chats, weights. torch is not in this environment."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.assets.training.workload_modules import Import, workload_on_the_path


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    monkeypatch.setenv("DEVICE", "cpu")
    with workload_on_the_path(monkeypatch, "titan") as load:
        yield load


def test_arguments_behind_two_hyphens_are_torchtitan_s(load: Import) -> None:
    split = load("settings").split_arguments
    assert split(["--size", "8B", "--", "--training.max_norm", "0.5"]) == (
        ["--size", "8B"],
        ["--training.max_norm", "0.5"],
    )
    assert split(["--size", "8B"]) == (["--size", "8B"], [])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--model", "llama"], "Did you mean llama3?"),
        (["--model", "flux"], "allowed: deepseek_v3, gpt_oss, llama3, qwen3, or another by CONFIG"),
        (["--config", "qwen3_14b"], "give PACKAGE:FUNCTION"),
        (["--task", "dpo"], "allowed: pretrain, sft"),
        (["--shard", "rank"], "allowed: all, node"),
        (["--mixed-precision", "fp16"], "allowed: bf16, no"),
        (["--tp", "-1"], "TP is -1: give 0 or more"),
        (["--seq-len", "long"], "--seq-len"),
        (["--seqlen", "64"], "--seqlen"),
        (["--float8", "yes"], "Hopper"),
        (["--lora-rank", "-1"], "LORA_RANK is -1"),
    ],
)
def test_a_wrong_setting_is_one_sentence(load: Import, arguments: list[str], sentence: str) -> None:
    with pytest.raises(SystemExit) as caught:
        load("settings").read_settings(arguments)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--tp", "3"], "give degrees whose product divides 16"),
        (["--tp", "16"], "give at most 8"),
        (["--tp", "8", "--cp", "2", "--seq-len", "16384", "--shard", "node"], "or SHARD=all"),
        (["--global-batch", "17"], "such as 16"),
        (["--cp", "2", "--seq-len", "1000"], "must be a multiple of 512: give one, such as 1024"),
        (["--tp", "8", "--seq-len", "4100"], "must be a multiple of 8"),
    ],
)
def test_settings_that_do_not_fit_the_job_are_one_sentence(
    load: Import, arguments: list[str], sentence: str
) -> None:
    settings = load("settings")
    with pytest.raises(SystemExit) as caught:
        settings.check_world(settings.read_settings(arguments), 16, 8)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "arguments", [[], ["--tp", "8"], ["--shard", "node"], ["--cp", "2"], ["--global-batch", "64"]]
)
def test_settings_that_fit_the_job_pass(load: Import, arguments: list[str]) -> None:
    settings = load("settings")
    settings.check_world(settings.read_settings(arguments), 16, 8)


def test_chats_are_checked_and_split(load: Import, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    rows = [{"prompt": f"q{n}", "completion": f"a{n}"} for n in range(39)]
    rows.append({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]})  # type: ignore[dict-item]
    file.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    prepare_chats = load("chats").prepare_chats
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
    with pytest.raises(load("trainkit.data.shards").ShardError, match=r"a\.jsonl, line 2: no chat"):
        load("chats").prepare_chats([file], tmp_path, "x", validation_every=20)
    assert not list(tmp_path.glob("chats-*/*.jsonl"))


def test_weights_of_a_folder_are_checked(load: Import, tmp_path: Path) -> None:
    weights = load("weights")
    assert weights.find_weights("", data=tmp_path) is None
    with pytest.raises(weights.WeightsError, match=r"has no config\.json, tokenizer\.json, \*\.safetensors"):
        weights.find_weights(str(tmp_path), data=tmp_path)
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (tmp_path / name).write_text("{}")
    assert weights.find_weights(str(tmp_path), data=tmp_path) == tmp_path
    with pytest.raises(weights.WeightsError, match="allowed: ORGANISATION/NAME"):
        weights.find_weights("llama-3-8b", data=tmp_path)


def test_a_run_keeps_the_batch_size_with_which_it_began(load: Import, tmp_path: Path) -> None:
    settings = load("settings").read_settings([])
    assert settings.with_batch_of_run(tmp_path).batch_size == 0
    (tmp_path / "batch_size").write_text("8\n")
    assert settings.with_batch_of_run(tmp_path).batch_size == 8
    given = load("settings").read_settings(["--batch-size", "2"])
    assert given.with_batch_of_run(tmp_path).batch_size == 2
