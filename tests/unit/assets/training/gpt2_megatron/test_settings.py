"""gpt2-megatron before its ranks start: how they share the work, and what AWS never gets."""

import dataclasses
import importlib
import re
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from tests.unit.assets.training.workload_modules import workload_on_the_path
from training_cluster.paths import ASSETS, ROOT


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    for name in ("DEVICE", "ACCELERATOR_KIND", "MIXED_PRECISION"):
        monkeypatch.delenv(name, raising=False)
    with workload_on_the_path(monkeypatch, "gpt2-megatron") as load:
        yield load("settings")


def test_the_step_of_an_export_without_its_run_is_refused(settings: ModuleType) -> None:
    with pytest.raises(SystemExit, match="EXPORT_STEP=5 is for the export of a run"):
        settings.read_settings(["--export-step", "5"])


def refusal(settings: ModuleType, *, nodes: int = 2, ranks: int = 8, **given: int) -> str:
    with pytest.raises(SystemExit) as refused:
        settings.sizes_of(dataclasses.replace(settings.Settings(), **given), nodes=nodes, ranks_a_node=ranks)
    return str(refused.value)


def test_sixteen_gpus_share_the_345m_model_in_all_three_ways(settings: ModuleType) -> None:
    given = dataclasses.replace(settings.Settings(), tensor_parallel=2, pipeline_parallel=2)
    sizes = settings.sizes_of(given, nodes=2, ranks_a_node=8)
    assert (sizes.tensor, sizes.pipeline, sizes.data) == (2, 2, 4)
    assert sizes.micro_batches * sizes.data * given.micro_batch_size == given.global_batch_size


@pytest.mark.parametrize(
    ("given", "said"),
    [
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
    ],
)
def test_sizes_that_do_not_divide_are_refused_with_those_that_would(
    settings: ModuleType, given: dict[str, int], said: str
) -> None:
    assert said in refusal(settings, **given)


def test_the_vocabulary_is_padded_for_every_tensor_parallel_rank(settings: ModuleType) -> None:
    padded = [
        dataclasses.replace(settings.Settings(), tensor_parallel=size).padded_vocab_size for size in (1, 2, 8)
    ]
    assert padded == [50304, 50432, 51200]


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("MIXED_PRECISION", "fp16", 'MIXED_PRECISION is "fp16"; allowed: bf16, no.'),
        ("MAX_STEPS", "0", "MAX_STEPS is 0: give 1 or more."),
        ("MAX_STEPS", "many", "invalid int value: 'many'"),
        ("GPT2_DROPOUT", "1", "GPT2_DROPOUT is 1.0: give a share below 1."),
        ("TRANSFORMER_IMPL", "apex", "allowed: transformer_engine, local."),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_with_what_is_allowed(
    settings: ModuleType, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(SystemExit, match=re.escape(said)):
        settings.read_settings([])


def test_gpus_have_transformer_engine_and_cpus_have_not(
    settings: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert settings.read_settings([]).transformer_impl == "local"
    monkeypatch.setenv("ACCELERATOR_KIND", "gpu")
    assert settings.read_settings([]).transformer_impl == "transformer_engine"


def test_nothing_that_goes_to_aws_has_or_names_the_shim_for_cpus() -> None:
    shims = [file.stem for file in (ROOT / "rehearsal" / "shims").glob("*.py")]
    assert "cuda_on_cpu" in shims
    names = re.compile("|".join([*shims, "rehearsal/shims"]))
    for file in (ASSETS).rglob("*"):
        if file.is_file() and file.suffix != ".md" and "cache" not in str(file):
            assert file.stem not in shims, file
            assert not names.search(file.read_text(encoding="utf-8", errors="replace")), file


def test_the_shim_does_nothing_where_nothing_is_rehearsed(monkeypatch: pytest.MonkeyPatch) -> None:
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
