"""Settings and data of gpt2, refused in one sentence before torch is loaded: here is none."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trainkit.data import shards

from tests.unit.assets.training.workload_modules import Import

CONFIG = {"model_type": "gpt2", "n_layer": 2, "n_head": 4, "n_embd": 64, "n_positions": 32, "vocab_size": 400}
Train = Callable[..., str]


@pytest.fixture
def train(load: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Train:
    """Trains as rank 0 of one on a hundred tokens of a vocabulary of 400; the line that it ends with."""
    splits: dict[str, tuple[shards.Shard, ...]] = {}
    for split in ("train", "val"):
        file = tmp_path / f"{split}-00000.bin"
        file.write_bytes(np.arange(100, dtype="<u2").tobytes())
        splits[split] = (shards.Shard(file.name, 100, shards.sha256_of(file)),)
    made = shards.Manifest(dtype="uint16", vocab_size=400, tokenizer_sha256="abc", source={}, splits=splits)
    shards.write_manifest(tmp_path, made)
    job = dict.fromkeys(("RUN_DIR", "DATA_DIR", "CHECKPOINT_DIR"), str(tmp_path))
    job |= {"RANK": "0", "LOCAL_RANK": "0", "EXPECTED_WORLD_SIZE": "1", "GPT2_CONTEXT": "16"}
    for name in ("ACCELERATOR_KIND", "DEVICE"):
        monkeypatch.delenv(name, raising=False)

    def start(*arguments: str, weights: Path | None = None, **env: str) -> str:
        noted = {"shards": str(tmp_path), "weights": weights and str(weights), "init_from": "scratch"}
        (tmp_path / "data.json").write_text(json.dumps(noted), encoding="utf-8")
        with monkeypatch.context() as given, pytest.raises((SystemExit, ModuleNotFoundError)) as ended:
            for name, value in (job | env).items():
                given.setenv(name, value)
            given.setattr(sys, "argv", ["train.py", *arguments])
            load("train").main()
        assert "\n" not in str(ended.value)
        return str(ended.value)

    return start


def test_wrong_settings_are_refused_before_torch(train: Train) -> None:
    assert "No module named" in train(MIXED_PRECISION="no")
    for env, said in (
        ({"GPT2_WIDTH": "10", "GPT2_HEADS": "3"}, "GPT2_WIDTH 10 is not a multiple of GPT2_HEADS 3."),
        ({"MIXED_PRECISION": "fp16"}, "no CPU trains in fp16: type MIXED_PRECISION=no, or bf16"),
        ({"VOCAB_SIZE": "300"}, "a vocabulary of 400 tokens and the model one of 320: give prepare.sh and"),
    ):
        assert said in train(**env)


def test_weights_that_do_not_fit_are_refused(train: Train, tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "tokenizer.json").write_text("{}", encoding="utf-8")
    cases: list[tuple[dict[str, Any], dict[str, str], str]] = [
        ({"model_type": "llama"}, {}, "contains a model of the type 'llama', but this trains gpt2"),
        (
            {},
            {"GPT2_CONTEXT": "64"},
            f"GPT2_CONTEXT is 64, but {weights} has 32 positions: give at most that",
        ),
        ({"vocab_size": 399}, {}, "has a vocabulary of 400 tokens and the model one of 399"),
        ({}, {}, f"made with a tokenizer other than {weights} has: submit again"),
    ]
    for config, env, said in cases:
        (weights / "config.json").write_text(json.dumps(CONFIG | config), encoding="utf-8")
        assert said in train(weights=weights, **env)


def test_fewer_sequences_than_ranks_are_refused(
    load: Import, train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = load("prepare")
    monkeypatch.setattr(prepare.Shards, "ensure", lambda _self, _bucket: tmp_path)
    monkeypatch.setattr(sys, "argv", ["prepare.py", "--gpt2-context", "40"])
    given = {"DATA_DIR": str(tmp_path), "INIT_FROM": "scratch", "CORPUS": "machine", "TRAINING_BUCKET": ""}
    for name, value in (given | {"EXPECTED_WORLD_SIZE": "3"}).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(
        shards.ShardError, match=r"3 data-parallel ranks needs a sequence of GPT2_CONTEXT=40 to"
    ):
        prepare.run()


def test_trained_weights_have_a_smaller_learning_rate(load: Import, tmp_path: Path) -> None:
    module = load("settings")
    rate = module.highest_learning_rate
    assert (rate(module.Settings(), None), rate(module.Settings(), tmp_path)) == (6e-4, 3e-5)
    assert rate(module.Settings(learning_rate=0.1), tmp_path) == 0.1


def test_ranks_share_the_cores_of_a_node(load: Import, tmp_path: Path) -> None:
    """Two sockets of two cores with two hardware threads, numbered as EC2 does: siblings far apart."""
    module = load("train")
    for cpu in range(8):
        topology = tmp_path / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "physical_package_id").write_text(f"{cpu % 4 // 2}\n", encoding="utf-8")
        (topology / "core_id").write_text(f"{cpu % 2}\n", encoding="utf-8")
    ordered = sorted(range(8), key=lambda cpu: module.place(cpu, tmp_path))
    assert [module.share(rank, 2, ordered) for rank in range(2)] == [{0, 4, 1, 5}, {2, 6, 3, 7}]
    shares = [module.share(rank, 3, ordered) for rank in range(3)]
    assert sorted(cpu for part in shares for cpu in part) == list(range(8))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU cannot be shared")
def test_a_rank_stays_in_its_share(load: Import) -> None:
    module = load("train")
    before = os.sched_getaffinity(0)
    try:
        assert module.pin(0, 1) == before
        own = module.pin(1, 2, of=len(before))
        assert len(own) < len(before)
        assert module.pin(0, 2, of=len(before)) == own, "what a launcher has cut to a share is left"
    finally:
        os.sched_setaffinity(0, before)
