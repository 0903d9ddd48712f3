"""bert-trainium's settings, its learning rate, and what it says of the cache of compiled graphs."""

import itertools
from pathlib import Path

import pytest

from tests.unit.assets.training.workload_modules import Import


@pytest.fixture(autouse=True)
def node(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node of Trainium."""
    job = ("EXPECTED_WORLD_SIZE", "NNODES", "NPROC_PER_NODE", "RANKS_PER_NODE", "PREPARE_ONLY")
    for name in ("DEVICE", "MIXED_PRECISION", "PRECOMPILE", *job):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ACCELERATOR_KIND", "neuron")
    monkeypatch.setenv("FAMILY", "trn1")


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"BERT_HEADS": "5"}, "BERT_WIDTH 1024 is not a multiple of BERT_HEADS 5"),
        ({"BERT_CONTEXT": "513"}, "BERT_CONTEXT is 513: give a number from 8 to 512"),
        ({"DEVICE": "tpu"}, 'DEVICE is "tpu"; allowed: neuron, cpu, xla-cpu'),
        ({"MIXED_PRECISION": "fp16"}, "MIXED_PRECISION is fp16"),
        ({"PRECOMPILE": "1", "DEVICE": "cpu"}, "PRECOMPILE=1 compiles for Trainium, and DEVICE is cpu"),
        ({"DEVICE": "xla-cpu", "EXPECTED_WORLD_SIZE": "2"}, "DEVICE=xla-cpu trains in one process"),
        (
            {"NNODES": "2", "NPROC_PER_NODE": "8", "RANKS_PER_NODE": "32"},
            "NPROC_PER_NODE is 8, and Neuron trains on several nodes only with all 32 cores of each",
        ),
        ({"ACCELERATOR_KIND": "gpu", "FAMILY": "p4d"}, "bert-trainium runs on Trainium, and p4d has none"),
        (
            {"ACCELERATOR_KIND": "gpu", "FAMILY": "p4d", "DEVICE": "neuron"},
            "DEVICE is neuron, and p4d has no Trainium",
        ),
    ],
)
def test_a_wrong_setting_is_one_sentence(
    load: Import, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], said: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as ended:
        load("settings").read_settings([])
    assert said in str(ended.value)
    assert "\n" not in str(ended.value)


@pytest.mark.parametrize(
    ("environment", "device"),
    [
        ({"NNODES": "1", "NPROC_PER_NODE": "8", "RANKS_PER_NODE": "32"}, "neuron"),
        ({"NNODES": "2", "NPROC_PER_NODE": "32", "RANKS_PER_NODE": "32"}, "neuron"),
        ({"ACCELERATOR_KIND": "none", "FAMILY": "m6i", "PREPARE_ONLY": "1"}, "cpu"),
    ],
)
def test_a_job_has_the_device_of_its_nodes(
    load: Import, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], device: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert load("settings").read_settings([]).device == device


def test_the_learning_rate_rises_and_falls(load: Import) -> None:
    module = load("settings")
    settings = module.Settings(max_steps=100, warmup_steps=20, learning_rate=4e-4)
    rates = [module.learning_rate(step, settings) for step in range(1, 101)]
    assert rates[0] == pytest.approx(4e-4 / 20)
    assert rates[19] == max(rates) == pytest.approx(4e-4)
    assert rates[20] < rates[19]
    assert 0 < rates[-1] < 1e-5
    falls = [before - after for before, after in itertools.pairwise(rates[19:])]
    assert falls == pytest.approx([falls[0]] * len(falls))
    settings = module.Settings(max_steps=10, warmup_steps=0, learning_rate=1.0)
    assert module.learning_rate(1, settings) == pytest.approx(10 / 11)


def test_compiled_and_missing_graphs_are_counted(load: Import, tmp_path: Path) -> None:
    module = load("compile_cache")
    for name, files in {
        "1": ("model.hlo_module.pb.gz", "model.neff"),
        "2": ("model.hlo_module.pb", "model.neff"),
        "3": ("model.hlo_module.pb",),
        "4": ("model.lock",),
    }.items():
        folder = tmp_path / "neuronxcc-2.26.6360.0+abc" / f"MODULE_{name}+d41d8cd9"
        folder.mkdir(parents=True)
        for file in files:
            (folder / file).touch()
    assert module.graphs(str(tmp_path)) == (2, 1)
    assert "compiled graphs: 2 in " in module.describe(str(tmp_path))
    described = module.describe(str(tmp_path / "none"))
    assert "compiled graphs: none in " in described
    assert "PRECOMPILE=1" in described
    assert module.graphs("s3://bucket/cache") is None, "it is not looked at"
