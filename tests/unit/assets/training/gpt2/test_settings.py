"""Settings of gpt2, and wrong input: refused in one sentence before torch is loaded: here is none."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from tests.unit.assets.training.workload_modules import GPT2, Import, workload_on_the_path
from training_cluster.paths import TRAINING

CONFIG = {"model_type": "gpt2", "n_layer": 2, "n_head": 4, "n_embd": 64, "n_positions": 32, "vocab_size": 400}
Train = Callable[..., str]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    with workload_on_the_path(monkeypatch, "gpt2") as load:
        yield load


@pytest.fixture
def shards(load: Import, tmp_path: Path) -> Path:
    """A hundred tokens a split, of a vocabulary of 400."""
    module = load("trainkit.data.shards")
    folder = tmp_path / "shards"
    folder.mkdir()
    splits = {}
    for split in ("train", "val"):
        file = folder / f"{split}-00000.bin"
        file.write_bytes(np.arange(100, dtype="<u2").tobytes())
        splits[split] = (module.Shard(file.name, 100, module.sha256_of(file)),)
    module.write_manifest(
        folder,
        module.Manifest(dtype="uint16", vocab_size=400, tokenizer_sha256="abc", source={}, splits=splits),
    )
    return folder


@pytest.fixture
def train(tmp_path: Path, shards: Path) -> Train:
    """Starts train.py as rank 0 of one; the one line that it ended with."""

    def start(*arguments: str, prepared: dict[str, str | None] | None = None, **env: str) -> str:
        run_dir = tmp_path / "run"
        run_dir.mkdir(exist_ok=True)
        noted = {"shards": str(shards), "weights": None, "init_from": "scratch"} | (prepared or {})
        if prepared is None or prepared:
            (run_dir / "data.json").write_text(json.dumps(noted), encoding="utf-8")
        else:
            (run_dir / "data.json").unlink(missing_ok=True)
        job = {
            "RUN_DIR": str(run_dir),
            "DATA_DIR": str(tmp_path),
            "CHECKPOINT_DIR": str(tmp_path),
            "RANK": "0",
            "LOCAL_RANK": "0",
            "EXPECTED_WORLD_SIZE": "1",
            "PYTHONPATH": str(TRAINING),
            "PYTHONDONTWRITEBYTECODE": "1",
            "GPT2_CONTEXT": "16",
        }
        done = subprocess.run(
            [sys.executable, str(GPT2 / "train.py"), *arguments],
            env={"PATH": os.environ["PATH"], **job, **env},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode != 0
        return done.stderr.strip()

    return start


def test_right_input_comes_as_far_as_torch(train: Train) -> None:
    assert "No module named" in train(MIXED_PRECISION="no")


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"MAX_STEPS": "many"}, "argument --max-steps: invalid int value: 'many'."),
        ({"BATCH_SIZE": "0"}, "BATCH_SIZE is 0: give 1 or more."),
        ({"SEED": "-1"}, "SEED is -1: give 0 or more."),
        ({"LEARNING_RATE": "-0.1"}, "LEARNING_RATE is -0.1: give 0 or more."),
        ({"DEVICE": "tpu"}, 'DEVICE is "tpu"; allowed: cpu, cuda.'),
        ({"GPT2_WIDTH": "10", "GPT2_HEADS": "3"}, "GPT2_WIDTH 10 is not a multiple of GPT2_HEADS 3."),
        ({"MIXED_PRECISION": "fp8"}, 'MIXED_PRECISION is "fp8"; allowed: bf16, fp16, no.'),
        ({"MIXED_PRECISION": "fp16"}, "no CPU trains in fp16: type MIXED_PRECISION=no, or bf16"),
        (
            {"VOCAB_SIZE": "300"},
            "has a vocabulary of 400 tokens and the model one of 320: give prepare.sh and",
        ),
        (
            {"GPT2_CONTEXT": "100"},
            "has 100 tokens in train, fewer than GPT2_CONTEXT (100) takes: add text",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused_in_one_line(
    train: Train, env: dict[str, str], said: str
) -> None:
    line = train(**env)
    assert line.count("\n") == 0, line
    assert line.startswith("train.py on ")
    assert said in line


def test_an_argument_wins_over_the_environment(train: Train) -> None:
    assert "BATCH_SIZE is -3: give 1 or more." in train("--batch-size", "-3", BATCH_SIZE="8")


def test_data_that_was_not_prepared_is_refused(train: Train) -> None:
    assert "data.json is missing: prepare.sh writes it before the ranks start" in train(prepared={})


@pytest.mark.slow
def test_shards_without_a_manifest_are_refused(train: Train, shards: Path) -> None:
    (shards / "manifest.json").unlink()
    assert "manifest.json is missing, so this data is incomplete" in train()


@pytest.mark.parametrize(
    ("config", "env", "said"),
    [
        ({"model_type": "llama"}, {}, "contains a model of the type 'llama', but this trains gpt2"),
        ({}, {"GPT2_CONTEXT": "64"}, "GPT2_CONTEXT is 64, but {} has 32 positions: give at most that many."),
        ({"vocab_size": 399}, {}, "has a vocabulary of 400 tokens and the model one of 399"),
        ({}, {}, "was made with a tokenizer other than {} has: submit again"),
    ],
)
def test_weights_that_do_not_fit_are_refused(
    train: Train, tmp_path: Path, config: dict[str, object], env: dict[str, str], said: str
) -> None:
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "config.json").write_text(json.dumps(CONFIG | config), encoding="utf-8")
    (weights / "tokenizer.json").write_text("{}", encoding="utf-8")
    line = train(prepared={"weights": str(weights)}, **env)
    assert line.count("\n") == 0, line
    assert said.format(weights) in line


def test_trained_weights_get_a_smaller_learning_rate_unless_one_is_given(
    load: Import, tmp_path: Path
) -> None:
    module = load("settings")
    rate = module.highest_learning_rate
    assert (rate(module.Settings(), None), rate(module.Settings(), tmp_path)) == (6e-4, 3e-5)
    assert rate(module.Settings(learning_rate=0.1), tmp_path) == 0.1


def test_ranks_of_a_node_share_its_cores_socket_by_socket(load: Import, tmp_path: Path) -> None:
    """Two sockets of two cores with two hardware threads, numbered as EC2 does: siblings far apart."""
    pinning = load("pinning")
    for cpu in range(8):
        topology = tmp_path / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "physical_package_id").write_text(f"{cpu % 4 // 2}\n", encoding="utf-8")
        (topology / "core_id").write_text(f"{cpu % 2}\n", encoding="utf-8")
    ordered = sorted(range(8), key=lambda cpu: pinning.place(cpu, tmp_path))
    assert [pinning.share(rank, 2, ordered) for rank in range(2)] == [{0, 4, 1, 5}, {2, 6, 3, 7}]
    shares = [pinning.share(rank, 3, ordered) for rank in range(3)]
    assert sorted(cpu for part in shares for cpu in part) == list(range(8))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU cannot be shared")
def test_a_rank_is_kept_to_its_share_and_stays_there(load: Import) -> None:
    pinning = load("pinning")
    before = os.sched_getaffinity(0)
    try:
        assert pinning.pin(0, 1) == before
        own = pinning.pin(1, 2, of=len(before))
        assert len(own) < len(before)
        assert pinning.pin(0, 2, of=len(before)) == own, "what a launcher has cut to a share is left"
    finally:
        os.sched_setaffinity(0, before)


def test_a_rehearsal_changes_sizes_device_and_data_and_nothing_else(load: Import) -> None:
    """Every name in it is a setting, or what to begin with, or how many ranks and threads there are."""
    settings = {field.name.upper() for field in fields(load("settings").Settings)}
    rehearsal = (GPT2 / "rehearsal.env").read_text(encoding="utf-8")
    names = set(re.findall(r"^export (\w+)=", rehearsal, flags=re.MULTILINE))
    assert "MAX_STEPS" in names & settings
    assert names - settings == {"NPROC_PER_NODE", "OMP_NUM_THREADS", "INIT_FROM", "CORPUS"}


def test_gpt2_refuses_trainium_with_a_reason() -> None:
    done = subprocess.run(
        ["bash", str(GPT2 / "train.sh")],
        env={"PATH": os.environ["PATH"], "ACCELERATOR_KIND": "neuron", "FAMILY": "trn1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "gpt2 runs on GPUs and CPUs, not on the trn1 family" in done.stderr
    assert "another workload" in done.stderr
