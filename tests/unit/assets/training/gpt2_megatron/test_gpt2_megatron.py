"""gpt2-megatron before its ranks start: settings and text; no tokenizer package is here."""

import dataclasses
import importlib
import re
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType

import pytest
from trainkit.data.shards import Manifest, Shard, ShardError, write_manifest

from tests.unit.assets.training.workload_modules import Import
from training_cluster.paths import ROOT


@pytest.fixture
def settings(load: Import, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    for name in ("DEVICE", "ACCELERATOR_KIND", "MIXED_PRECISION"):
        monkeypatch.delenv(name, raising=False)
    return load("settings")


def test_sixteen_gpus_share_the_345m_model(settings: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    given = dataclasses.replace(settings.Settings(), tensor_parallel=2, pipeline_parallel=2)
    sizes = settings.sizes_of(given, nodes=2, ranks_a_node=8)
    assert (sizes.tensor, sizes.pipeline, sizes.data) == (2, 2, 4)
    assert sizes.micro_batches * sizes.data * given.micro_batch_size == given.global_batch_size
    padded = [
        dataclasses.replace(settings.Settings(), tensor_parallel=size).padded_vocab_size for size in (1, 2, 8)
    ]
    assert padded == [50304, 50432, 51200], "for every tensor parallel rank"
    cases: list[tuple[dict[str, int], str]] = [
        ({"tensor_parallel": 3}, "the model has 16 heads (GPT2_HEADS): give one of 1, 2, 4, 8, 16."),
        ({"pipeline_parallel": 5}, "24 layers (GPT2_LAYERS): give one of 1, 2, 3, 4, 6, 8, 12, 24."),
        (
            {"tensor_parallel": 8, "pipeline_parallel": 3},
            "8 x 3 = 24 and the job has 16 ranks (2 nodes x 8): the product must be one of 1, 2, 4, 8, 16.",
        ),
        (
            {"global_batch_size": 500},
            "500, not a multiple of MICRO_BATCH_SIZE x data parallel ranks, 8 x 16 = 128",
        ),
        ({"gpt2_width": 1000}, "GPT2_WIDTH is 1000, not a multiple of GPT2_HEADS, 16"),
    ]
    for given, said in cases:
        with pytest.raises(SystemExit, match=re.escape(said)):
            settings.sizes_of(dataclasses.replace(settings.Settings(), **given), nodes=2, ranks_a_node=8)
    assert settings.read_settings([]).transformer_impl == "local"
    monkeypatch.setenv("ACCELERATOR_KIND", "gpu")
    assert settings.read_settings([]).transformer_impl == "transformer_engine"


def test_the_shim_works_in_rehearsals_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "rehearsal" / "shims"))
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    for rehearsed, added in (("0", 0), ("1", 1)):
        monkeypatch.setenv("TRAINING_REHEARSAL", rehearsed)
        finders = list(sys.meta_path)
        monkeypatch.setattr("sys.meta_path", list(finders))
        monkeypatch.delitem(sys.modules, "sitecustomize", raising=False)
        importlib.import_module("sitecustomize")
        assert len(sys.meta_path) - len(finders) == added
        monkeypatch.setattr("sys.meta_path", finders)
    monkeypatch.delitem(sys.modules, "sitecustomize", raising=False)


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
