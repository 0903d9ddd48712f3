"""gpt2-megatron's choice of a text; no tokenizer package is here."""

import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from trainkit.data.shards import Manifest, Shard, ShardError, write_manifest

from tests.unit.assets.training.workload_modules import Import


def test_gpus_do_not_wait_for_wikipedia(
    load: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = load("prepare")
    monkeypatch.setattr(sys, "argv", ["prepare.py"])
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    for name in ("CORPUS", "WIKIPEDIA_EDITION", "VOCAB_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert prepare.shards_of_run(None).folder == tmp_path / "wikipedia-20231101.en-vocab-50257"
    for kind, here, corpus, is_refused in (
        ("gpu", "", "", True),
        ("gpu", "yes", "", False),
        ("none", "", "", False),
        ("gpu", "", "machine", False),
    ):
        for name, value in {"ACCELERATOR_KIND": kind, "PREPARE_HERE": here, "CORPUS": corpus}.items():
            monkeypatch.setenv(name, value)
        refused = pytest.raises(ShardError, match="prepare it on CPUs first")
        with refused if is_refused else nullcontext():
            prepare.shards_of_run(None).refuse_on_gpus()


def test_a_text_without_validation_is_refused_once(
    load: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = load("prepare")
    splits: dict[str, tuple[Shard, ...]] = {"train": (Shard("train-00000.bin", 100, ""),), "val": ()}
    manifest = Manifest(dtype="uint16", vocab_size=400, tokenizer_sha256="", source={}, splits=splits)
    write_manifest(tmp_path, manifest)
    monkeypatch.setattr(prepare.Shards, "ensure", lambda _self, _bucket: tmp_path)
    monkeypatch.setattr(sys, "argv", ["prepare.py"])
    # Four ranks of which two share a model: two sequences are enough.
    given = {"DATA_DIR": str(tmp_path), "CORPUS": "machine", "GPT2_CONTEXT": "48", "EXPECTED_WORLD_SIZE": "4"}
    for name, value in (given | {"TENSOR_PARALLEL": "2", "INIT_FROM": "", "TRAINING_BUCKET": ""}).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(
        ShardError, match=r"GPT2_CONTEXT=48 to train on and one for validation, .* has 2 and 0: "
    ):
        prepare.run()
    monkeypatch.setenv("EVAL_SEQUENCES", "0")
    with pytest.raises(KeyError, match="end_of_text"):  # which comes next
        prepare.run()
