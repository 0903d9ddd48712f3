"""Settings that fit a model into the memory of GPUs: estimate against published tables, choice, refusal."""

import dataclasses
import importlib
from collections.abc import Iterator
from functools import partial
from types import ModuleType
from typing import Any

import pytest

from tests.unit.assets.training.workload_modules import workload_on_the_path
from training_cluster.paths import TRAINING


@pytest.fixture
def fitting(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    with workload_on_the_path(monkeypatch, "titan") as load:
        yield load("trainkit.fitting")


def choose(
    fitting: ModuleType, model: object, asked: dict[str, Any], nodes: object, *, seq_len: int, **options: Any
) -> tuple[Any, list[str]]:
    """Choose among all settings that titan allows."""
    batch = options.pop("global_batch", 0)
    faults = partial(importlib.import_module("nodes").faults_of, model, seq_len=seq_len, global_batch=batch)
    found: tuple[Any, list[str]] = fitting.choose(
        model, asked, nodes, faults=faults, seq_len=seq_len, **options
    )
    return found


def model_of(fitting: ModuleType, model: str, size: str) -> Any:
    return fitting.read_models(TRAINING / "titan" / "models.json")[model][size]


@pytest.mark.parametrize(
    ("size", "nodes", "choice", "seq_len", "gib"),
    [
        ("8B", 1, {"batch_size": 2}, 8192, 77.0),
        ("8B", 16, {"batch_size": 2}, 8192, 62.0),
        ("8B", 1, {"activation_checkpointing": "full"}, 32768, 83.9),
        ("70B", 32, {"activation_checkpointing": "full", "tp": 8, "batch_size": 16}, 8192, 71.9),
    ],
)
def test_the_estimate_is_near_torchtitan_s_own_tables(
    *, fitting: ModuleType, size: str, nodes: int, choice: dict[str, int | str], seq_len: int, gib: float
) -> None:
    """benchmarks/llama3_h100_202412_torchtitan.md; the loss was not computed in chunks then."""
    estimate = fitting.memory_gib(
        model_of(fitting, "llama3", size),
        fitting.Choice(**choice),
        fitting.Nodes(count=nodes, gpus=8, memory_gib=96),
        seq_len=seq_len,
        chunks=1,
    )
    assert estimate == pytest.approx(gib, rel=0.11)


@pytest.mark.parametrize(
    ("model", "size", "gpus", "choice", "lora", "gib"),
    [
        ("llama3", "8B", 8, {"batch_size": 2}, False, 50.8),
        ("llama3", "8B", 8, {"activation_checkpointing": "none"}, False, 72.3),
        ("llama3", "8B", 8, {}, True, 35.0),
        ("llama3", "1B", 1, {"activation_checkpointing": "none", "batch_size": 2}, False, 48.8),
        ("qwen3", "8B", 8, {"batch_size": 2}, False, 54.0),
    ],
)
def test_the_estimate_is_near_the_storages_of_a_step_over_fake_tensors(
    *,
    fitting: ModuleType,
    model: str,
    size: str,
    gpus: int,
    choice: dict[str, int | str],
    lora: bool,
    gib: float,
) -> None:
    """torchtitan 0.3.0's model, FSDP, checkpointing and loss in chunks; counted with 2 and 4 layers."""
    estimate = fitting.memory_gib(
        model_of(fitting, model, size),
        fitting.Choice(**choice),
        fitting.Nodes(count=1, gpus=gpus, memory_gib=96),
        seq_len=8192,
        lora=lora,
        compiled=False,
    )
    assert estimate == pytest.approx(gib, rel=0.11)


def test_mixtures_of_experts_keep_a_copy_of_each_token_from_both_all_to_alls(fitting: ModuleType) -> None:
    gpus, model = fitting.Nodes(count=2, gpus=8, memory_gib=80), model_of(fitting, "qwen3", "30B-A3B")
    without = dataclasses.replace(model, experts_of_token=0)

    def of_copies(**choice: int | str) -> float:
        with_copies, plain = (
            fitting.memory_gib(each, fitting.Choice(**choice), gpus, seq_len=4096)
            for each in (model, without)
        )
        return float(with_copies - plain)

    # 48 layers x 4,096 tokens x 8 experts x 2,048 wide x 2 bytes, twice.
    assert of_copies(ep=8) == pytest.approx(12.0)
    assert of_copies(ep=1) == 0
    assert of_copies(ep=8, activation_checkpointing="none") > 18


def test_layers_that_are_not_compiled_keep_more(fitting: ModuleType) -> None:
    gpus = fitting.Nodes(count=1, gpus=8, memory_gib=80)
    model = model_of(fitting, "llama3", "8B")
    asked = {"batch_size": 1, "tp": 1}
    found = [
        choose(fitting, model, asked, gpus, seq_len=8192, compiled=each)[0].activation_checkpointing
        for each in (True, False)
    ]
    assert found == ["none", "selective"]


@pytest.mark.parametrize(
    ("model", "size", "nodes", "memory", "seq_len", "expected"),
    [
        ("llama3", "8B", 1, 80, 4096, {"tp": 1, "shard": "all"}),
        ("llama3", "8B", 4, 80, 4096, {"tp": 1, "shard": "node"}),
        ("llama3", "8B", 1, 40, 4096, {"activation_checkpointing": "selective", "batch_size": 1}),
        ("qwen3", "30B-A3B", 2, 80, 4096, {"ep": 8, "shard": "all"}),
        # 8 ranks an expert cut its 2,880 columns evenly, 128 do not.
        ("gpt_oss", "120b", 128, 80, 4096, {"ep": 128, "shard": "all"}),
        ("llama3", "70B", 16, 80, 131072, {"tp": 1, "cp": 8, "activation_checkpointing": "full"}),
    ],
)
def test_what_fits_is_chosen(
    *,
    fitting: ModuleType,
    model: str,
    size: str,
    nodes: int,
    memory: int,
    seq_len: int,
    expected: dict[str, int | str],
) -> None:
    gpus = fitting.Nodes(count=nodes, gpus=8, memory_gib=memory)
    choice, reasons = choose(fitting, model_of(fitting, model, size), {}, gpus, seq_len=seq_len)
    assert {name: getattr(choice, name) for name in expected} == expected
    assert [line.partition("=")[0] for line in reasons[:-1]] == [
        *("TP", "CP", "EP", "SHARD", "ACTIVATION_CHECKPOINTING", "BATCH_SIZE")
    ]


def test_what_the_user_sets_wins_and_is_given_no_reason(fitting: ModuleType) -> None:
    gpus = fitting.Nodes(count=1, gpus=8, memory_gib=80)
    choice, reasons = choose(
        fitting, model_of(fitting, "llama3", "8B"), {"tp": 4, "batch_size": 3}, gpus, seq_len=4096
    )
    assert (choice.tp, choice.batch_size) == (4, 3)
    assert not [line for line in reasons if line.startswith(("TP", "BATCH_SIZE"))]


def test_a_model_that_cannot_fit_is_refused_with_the_fewest_nodes_that_would(fitting: ModuleType) -> None:
    gpus = fitting.Nodes(count=1, gpus=8, memory_gib=80, name="p5.48xlarge")
    with pytest.raises(fitting.DoesNotFitError, match=r"a GPU of p5.48xlarge has 80: take (\d+) nodes"):
        choose(fitting, model_of(fitting, "llama3", "70B"), {}, gpus, seq_len=4096)


def test_a_batch_of_all_ranks_is_a_multiple_of_the_chosen_one(fitting: ModuleType) -> None:
    gpus = fitting.Nodes(count=1, gpus=8, memory_gib=80)
    choice, _ = choose(fitting, model_of(fitting, "llama3", "1B"), {}, gpus, seq_len=4096, global_batch=24)
    assert choice.batch_size == 1
