"""Settings that fit a model into the memory of GPUs: estimate against published tables, choice, refusal."""

import dataclasses
from collections.abc import Iterator
from functools import partial
from types import ModuleType
from typing import Any

import pytest
from trainkit import fitting
from trainkit.fitting import DoesNotFitError
from trainkit.sizes import Choice, Model, Nodes, read_models

from tests.unit.assets.training.workload_modules import workload_on_the_path
from training_cluster.paths import TRAINING

MODELS = read_models(TRAINING / "titan" / "models.json")
LLAMA = MODELS["llama3"]
H100 = Nodes(count=1, gpus=8, memory_gib=80, name="p5.48xlarge")


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The settings that titan allows."""
    with workload_on_the_path(monkeypatch, "titan") as load:
        yield load("nodes")


def choose(
    nodes: ModuleType,
    model: Model,
    asked: dict[str, Any],
    gpus: Nodes,
    *,
    seq_len: int,
    **options: Any,
) -> tuple[Choice, list[str]]:
    """Choose among all settings that titan allows."""
    batch = options.pop("global_batch", 0)
    faults = partial(nodes.faults_of, model, seq_len=seq_len, global_batch=batch)
    return fitting.choose(model, asked, gpus, faults=faults, seq_len=seq_len, **options)


def test_the_estimate_is_near_published_figures(nodes: ModuleType) -> None:
    """benchmarks/llama3_h100_202412_torchtitan.md; the loss was not computed in chunks then."""
    for size, count, choice, seq_len, gib in (
        ("8B", 1, Choice(batch_size=2), 8192, 77.0),
        ("8B", 16, Choice(batch_size=2), 8192, 62.0),
        ("8B", 1, Choice(activation_checkpointing="full"), 32768, 83.9),
        ("70B", 32, Choice(activation_checkpointing="full", tp=8, batch_size=16), 8192, 71.9),
    ):
        gpus = Nodes(count=count, gpus=8, memory_gib=96)
        estimate = fitting.memory_gib(LLAMA[size], choice, gpus, seq_len=seq_len, chunks=1)
        assert estimate == pytest.approx(gib, rel=0.11)
    for model, count, choice, lora, gib in (
        (LLAMA["8B"], 8, Choice(batch_size=2), False, 50.8),
        (LLAMA["8B"], 8, Choice(activation_checkpointing="none"), False, 72.3),
        (LLAMA["8B"], 8, Choice(), True, 35.0),
        (LLAMA["1B"], 1, Choice(activation_checkpointing="none", batch_size=2), False, 48.8),
        (MODELS["qwen3"]["8B"], 8, Choice(batch_size=2), False, 54.0),
    ):
        gpus = Nodes(count=1, gpus=count, memory_gib=96)
        estimate = fitting.memory_gib(model, choice, gpus, seq_len=8192, lora=lora, compiled=False)
        assert estimate == pytest.approx(gib, rel=0.11)
    gpus, model = Nodes(count=2, gpus=8, memory_gib=80), MODELS["qwen3"]["30B-A3B"]
    without = dataclasses.replace(model, experts_of_token=0)

    def of_copies(choice: Choice) -> float:
        with_copies, plain = (fitting.memory_gib(e, choice, gpus, seq_len=4096) for e in (model, without))
        return with_copies - plain

    # 48 layers x 4,096 tokens x 8 experts x 2,048 wide x 2 bytes, twice.
    assert of_copies(Choice(ep=8)) == pytest.approx(12.0)
    assert of_copies(Choice(ep=1)) == 0
    assert of_copies(Choice(ep=8, activation_checkpointing="none")) > 18
    asked = {"batch_size": 1, "tp": 1}
    found = [
        choose(nodes, LLAMA["8B"], asked, H100, seq_len=8192, compiled=each)[0].activation_checkpointing
        for each in (True, False)
    ]
    assert found == ["none", "selective"]


@pytest.mark.parametrize(
    ("model", "size", "count", "memory", "seq_len", "expected"),
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
    nodes: ModuleType,
    model: str,
    size: str,
    count: int,
    memory: int,
    seq_len: int,
    expected: dict[str, int | str],
) -> None:
    gpus = Nodes(count=count, gpus=8, memory_gib=memory)
    choice, reasons = choose(nodes, MODELS[model][size], {}, gpus, seq_len=seq_len)
    assert {name: getattr(choice, name) for name in expected} == expected
    assert [line.partition("=")[0] for line in reasons[:-1]] == [
        *("PP", "TP", "CP", "EP", "SHARD", "ACTIVATION_CHECKPOINTING", "BATCH_SIZE")
    ]


def test_a_pipeline_is_chosen_where_fsdp_waits(nodes: ModuleType) -> None:
    slow = Nodes(count=4, gpus=8, memory_gib=24, name="g6.48xlarge", tflops=121, network_gbps=100)
    choice, reasons = choose(nodes, LLAMA["8B"], {}, slow, seq_len=2048)
    assert (choice.pp, choice.batch_size, choice.shard) == (4, 16, "node")
    assert reasons[0] == "PP=4: FSDP alone would wait for the network"
    alone, _ = choose(nodes, LLAMA["8B"], {"pp": 1}, slow, seq_len=2048)
    # 8 bytes of each of 8.03 billion parameters come over 12.5 GB/s.
    assert fitting.seconds(LLAMA["8B"], alone, nodes=slow, seq_len=2048) == pytest.approx(5.14, rel=0.01)
    for network in (0, 3200):
        other = dataclasses.replace(slow, network_gbps=network)
        assert choose(nodes, LLAMA["8B"], {}, other, seq_len=2048)[0].pp == 1


def test_a_stage_keeps_its_weights_gathered() -> None:
    """In bf16, with their gradients in fp32; of the first stage's layers, all stages' sequences are kept."""
    gpus = Nodes(count=4, gpus=8, memory_gib=80)
    whole, stages = (
        fitting.memory_gib(LLAMA["70B"], Choice(pp=pp, tp=8, batch_size=4), gpus, seq_len=4096)
        for pp in (1, 4)
    )
    layers = (LLAMA["70B"].parameters - 2 * LLAMA["70B"].embedding) / 4 / 8
    kept = fitting.memory_gib(LLAMA["70B"], Choice(tp=8), gpus, seq_len=4096)
    assert stages - kept == pytest.approx(6 * layers / 2**30)
    assert stages < whole


def test_what_the_user_sets_wins(nodes: ModuleType) -> None:
    choice, reasons = choose(nodes, LLAMA["8B"], {"tp": 4, "batch_size": 3}, H100, seq_len=4096)
    assert (choice.tp, choice.batch_size) == (4, 3)
    assert not [line for line in reasons if line.startswith(("TP", "BATCH_SIZE"))]
    choice, _ = choose(nodes, LLAMA["1B"], {}, H100, seq_len=4096, global_batch=24)
    assert choice.batch_size == 1, "a batch of all ranks is a multiple of it"
    with pytest.raises(DoesNotFitError, match=r"a GPU of p5.48xlarge has 80: take (\d+) nodes"):
        choose(nodes, LLAMA["70B"], {}, H100, seq_len=4096)


def test_a_refusal_names_the_users_own_setting(nodes: ModuleType) -> None:
    """An estimate that is not certain refuses nothing."""
    gpu = Nodes(count=1, gpus=1, memory_gib=80, name="p5.4xlarge")
    none, long = {"activation_checkpointing": "none"}, 65536
    for asked, seq_len, remedy in (
        ({"batch_size": 32, **none}, 8192, "give BATCH_SIZE=4, or leave it out."),
        (none, long, "give ACTIVATION_CHECKPOINTING=full, or leave it out."),
        (
            {"batch_size": 8, **none, "tp": 1},
            *(long, "give ACTIVATION_CHECKPOINTING=full BATCH_SIZE=1, or leave them out."),
        ),
    ):
        with pytest.raises(DoesNotFitError) as refused:
            choose(nodes, LLAMA["1B"], asked, gpu, seq_len=seq_len)
        assert str(refused.value).endswith(f": {remedy}")
    gpu, asked = Nodes(count=1, gpus=1, memory_gib=80), {"activation_checkpointing": "none"}
    _, reasons = choose(nodes, LLAMA["1B"], {**asked, "batch_size": 6}, gpu, seq_len=8192)
    assert reasons[-1] == (
        "memory: about 88.0 of 80 GiB of a GPU (estimate +-20%), of which 76 are usable: it does not fit, "
        "unless the estimate is too high. To be sure, give BATCH_SIZE=3, or leave it out."
    )
    _, reasons = choose(nodes, LLAMA["1B"], {**asked, "batch_size": 2}, gpu, seq_len=8192)
    assert reasons[-1] == "memory: about 43.1 of 80 GiB of a GPU (estimate +-20%)"
