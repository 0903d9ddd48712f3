"""Settings that fit a model into the memory of GPUs: estimate against published tables, choice, refusal."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest

from tests.unit.assets.training.workload_modules import workload_on_the_path


@pytest.fixture
def defaults(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    with workload_on_the_path(monkeypatch, "titan") as load:
        yield load("defaults")


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
    *, defaults: ModuleType, size: str, nodes: int, choice: dict[str, int | str], seq_len: int, gib: float
) -> None:
    """benchmarks/llama3_h100_202412_torchtitan.md; the loss was not computed in chunks then."""
    estimate = defaults.memory_gib(
        defaults.known("llama3", size),
        defaults.Choice(**choice),
        defaults.Nodes(count=nodes, gpus=8, memory_gib=96),
        seq_len=seq_len,
        chunks=1,
    )
    assert estimate == pytest.approx(gib, rel=defaults.ERROR)


@pytest.mark.parametrize(
    ("model", "size", "nodes", "memory", "seq_len", "expected"),
    [
        ("llama3", "8B", 1, 80, 4096, {"tp": 1, "shard": "all"}),
        ("llama3", "8B", 4, 80, 4096, {"tp": 1, "shard": "node"}),
        ("llama3", "8B", 1, 40, 4096, {"activation_checkpointing": "selective", "batch_size": 1}),
        ("qwen3", "30B-A3B", 2, 80, 4096, {"ep": 8, "shard": "all"}),
        ("llama3", "70B", 16, 80, 131072, {"tp": 1, "cp": 8, "activation_checkpointing": "full"}),
    ],
)
def test_what_fits_is_chosen(
    *,
    defaults: ModuleType,
    model: str,
    size: str,
    nodes: int,
    memory: int,
    seq_len: int,
    expected: dict[str, int | str],
) -> None:
    gpus = defaults.Nodes(count=nodes, gpus=8, memory_gib=memory)
    choice, reasons = defaults.choose(defaults.known(model, size), {}, gpus, seq_len=seq_len)
    assert {name: getattr(choice, name) for name in expected} == expected
    assert [line.partition("=")[0] for line in reasons[:-1]] == [
        *("TP", "CP", "EP", "SHARD", "ACTIVATION_CHECKPOINTING", "BATCH_SIZE")
    ]


def test_what_the_user_sets_wins_and_is_given_no_reason(defaults: ModuleType) -> None:
    gpus = defaults.Nodes(count=1, gpus=8, memory_gib=80)
    choice, reasons = defaults.choose(
        defaults.known("llama3", "8B"), {"tp": 4, "batch_size": 3}, gpus, seq_len=4096
    )
    assert (choice.tp, choice.batch_size) == (4, 3)
    assert not [line for line in reasons if line.startswith(("TP", "BATCH_SIZE"))]


def test_a_model_that_cannot_fit_is_refused_with_the_fewest_nodes_that_would(defaults: ModuleType) -> None:
    gpus = defaults.Nodes(count=1, gpus=8, memory_gib=80, name="p5.48xlarge")
    with pytest.raises(defaults.DoesNotFitError, match=r"a GPU of p5.48xlarge has 80: take (\d+) nodes"):
        defaults.choose(defaults.known("llama3", "70B"), {}, gpus, seq_len=4096)


def test_a_batch_of_all_ranks_is_a_multiple_of_the_chosen_one(defaults: ModuleType) -> None:
    gpus = defaults.Nodes(count=1, gpus=8, memory_gib=80)
    choice, _ = defaults.choose(defaults.known("llama3", "1B"), {}, gpus, seq_len=4096, global_batch=24)
    assert choice.batch_size == 1


def test_ranks_take_what_fits_the_memory_that_the_partition_states(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpu = {"ACCELERATOR_KIND": "gpu", "ACCELERATOR_MEMORY_GIB": "80.0", "INSTANCE_TYPE": "p5.48xlarge"}
    for name, value in gpu.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("DEVICE", raising=False)
    with workload_on_the_path(monkeypatch, "titan") as load:
        read, fit = load("settings").read_settings, load("settings").fit
        settings, reasons = fit(read(["--size", "8B", "--tp", "2"]), nodes=2, ranks_a_node=8)
        assert (settings.tp, settings.cp, settings.shard) == (2, 1, "node")
        assert any(each.startswith("SHARD=node: ") for each in reasons)
        with pytest.raises(SystemExit, match="llama3 405B does not fit: it needs about"):
            fit(read(["--size", "405B"]), nodes=2, ranks_a_node=8)
        monkeypatch.delenv("ACCELERATOR_MEMORY_GIB")
        unknown, _ = fit(read(["--size", "405B"]), nodes=2, ranks_a_node=8)
        assert unknown.activation_checkpointing == "selective"


@pytest.mark.parametrize(("capability", "is_refused"), [("8.0", True), ("8.9", False), ("10.0", False)])
def test_float8_is_refused_on_gpus_that_lack_it(
    monkeypatch: pytest.MonkeyPatch, capability: str, is_refused: bool
) -> None:
    gpu = {"ACCELERATOR_KIND": "gpu", "COMPUTE_CAPABILITY": capability, "INSTANCE_TYPE": "p4d.24xlarge"}
    for name, value in gpu.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("DEVICE", raising=False)
    with workload_on_the_path(monkeypatch, "titan") as load:
        read = load("settings").read_settings
        if is_refused:
            with pytest.raises(SystemExit, match=f"8.9 or more .* those of p4d.24xlarge have {capability}"):
                read(["--float8", "yes"])
        else:
            assert read(["--float8", "yes"]).float8 == "yes"
