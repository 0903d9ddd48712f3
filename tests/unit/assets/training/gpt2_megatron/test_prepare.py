"""gpt2-megatron's choice of a text; no tokenizer package is here."""

import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from trainkit.data.shards import ShardError

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
