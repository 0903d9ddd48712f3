"""gpt2-megatron before its ranks start: how they share the work, and what AWS never gets."""

import dataclasses
import importlib
import re
import sys
from types import ModuleType

import pytest

from tests.unit.assets.training.workload_modules import Import
from training_cluster.paths import ROOT


@pytest.fixture
def settings(load: Import, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    for name in ("DEVICE", "ACCELERATOR_KIND", "MIXED_PRECISION"):
        monkeypatch.delenv(name, raising=False)
    return load("settings")


def test_sixteen_gpus_share_the_345m_model(settings: ModuleType) -> None:
    given = dataclasses.replace(settings.Settings(), tensor_parallel=2, pipeline_parallel=2)
    sizes = settings.sizes_of(given, nodes=2, ranks_a_node=8)
    assert (sizes.tensor, sizes.pipeline, sizes.data) == (2, 2, 4)
    assert sizes.micro_batches * sizes.data * given.micro_batch_size == given.global_batch_size
    padded = [
        dataclasses.replace(settings.Settings(), tensor_parallel=size).padded_vocab_size for size in (1, 2, 8)
    ]
    assert padded == [50304, 50432, 51200], "for every tensor parallel rank"


def test_sizes_that_do_not_divide_are_refused(settings: ModuleType) -> None:
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


def test_gpus_have_transformer_engine(settings: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
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
