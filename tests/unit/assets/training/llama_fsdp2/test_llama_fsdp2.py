"""The pure parts of llama-fsdp2: sizes, schedule, which sequences a rank takes, what it says to wrong input.

torch is not in this environment.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.assets.training.workload_modules import LLAMA, Import, workload_on_the_path
from training_cluster.paths import TRAINING

Train = Callable[..., str]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    with workload_on_the_path(monkeypatch, "llama-fsdp2") as load:
        yield load


@pytest.mark.parametrize(
    ("size", "parameters"),
    # Those of the published checkpoints; our own two.
    [("8b", 8_030_261_248), ("1b", 1_235_814_400), ("125m", 124_865_280), ("tiny", 656_000)],
)
def test_a_size_has_the_parameters_that_its_name_says(load: Import, size: str, parameters: int) -> None:
    assert load("sizes").SIZES[size].parameters == parameters


def test_published_speed_and_published_mfu_agree_by_our_arithmetic(load: Import) -> None:
    shape, mfu = load("sizes").SIZES["8b"], load("trainkit.run.mfu")
    flops = mfu.flops_per_token(shape.computing_parameters, shape.layers, shape.width, 8192)
    figures = json.loads((LLAMA / "figures.json").read_text())
    shares = [figure["value"] for figure in figures if figure["metric"] == "mfu"]
    speeds = [figure["value"] for figure in figures if figure["metric"] == "tokens_per_s"]
    found = [mfu.mfu(speed, flops, 989.0, 32) for speed in speeds]
    assert len(found) == 2
    assert found == pytest.approx(shares, abs=5e-4)


def test_a_tied_matrix_counts_once_and_computes(load: Import) -> None:
    untied = load("sizes").SIZES["8b"]
    tied = dataclasses.replace(untied, tied=True)
    assert untied.parameters - tied.parameters == untied.vocab_size * untied.width
    assert untied.computing_parameters == tied.computing_parameters == tied.parameters


def test_single_sizes_replace_those_of_the_name(load: Import) -> None:
    settings = load("settings")
    given = settings.Settings(llama_size="tiny", llama_layers=3, vocab_size=999, llama_tied="no")
    wanted = dataclasses.replace(load("sizes").SIZES["tiny"], layers=3, vocab_size=999, tied=False)
    assert settings.shape_of(given) == wanted


def test_the_learning_rate_warms_up_and_falls_to_a_tenth(load: Import) -> None:
    settings = load("settings")
    given = settings.Settings(max_steps=110, warmup_steps=10, learning_rate=1.0)
    rates = [settings.learning_rate(step, given) for step in (1, 10, 60, 110, 500)]
    assert rates == pytest.approx([0.1, 1.0, 0.55, 0.1, 0.1])


@pytest.mark.parametrize(("given", "every"), [("none", 0), ("full", 1), ("3", 3)])
def test_activation_checkpointing_says_which_layers(load: Import, given: str, every: int) -> None:
    assert load("settings").Settings(activation_checkpointing=given).recompute_every == every


def draw(load: Import, key: list[int], **sizes: int) -> Any:
    return load("batches").starts_of(key, **{"tokens": 50, "length": 9, "batch_size": 2} | sizes)


def test_fewer_ranks_in_more_micro_steps_take_the_very_same_sequences(load: Import) -> None:
    many = draw(load, [0, 1, 7], ranks=4, micro_steps=1)
    few = draw(load, [0, 1, 7], ranks=1, micro_steps=4)
    assert sorted(many.ravel()) == sorted(few.ravel())
    assert draw(load, [0, 1, 8], ranks=4, micro_steps=1).tolist() != many.tolist(), "another step, others"
    assert draw(load, [1, 1, 7], ranks=4, micro_steps=1).tolist() != many.tolist(), "validation has its own"


def test_every_token_can_begin_a_sequence_that_fits_and_no_other(load: Import) -> None:
    starts = draw(load, [0, 1, 1], ranks=1, micro_steps=1, batch_size=4000)
    assert (starts.min(), starts.max()) == (0, 50 - 9)


@pytest.fixture
def shards(load: Import, tmp_path: Path) -> Path:
    """A hundred tokens a split, of a vocabulary of 300."""
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
        module.Manifest(dtype="uint16", vocab_size=300, tokenizer_sha256="abc", source={}, splits=splits),
    )
    return folder


@pytest.fixture
def train(tmp_path: Path, shards: Path) -> Train:
    """Starts train.py as rank 0 of one; the one line that it ended with."""

    def start(*arguments: str, **env: str) -> str:
        run_dir = tmp_path / "run"
        run_dir.mkdir(exist_ok=True)
        (run_dir / "data.json").write_text(json.dumps({"shards": str(shards)}), encoding="utf-8")
        job = {
            "RUN_DIR": str(run_dir),
            "DATA_DIR": str(tmp_path),
            "CHECKPOINT_DIR": str(tmp_path / "checkpoints"),
            "RANK": "0",
            "LOCAL_RANK": "0",
            "EXPECTED_WORLD_SIZE": "1",
            "PYTHONPATH": str(TRAINING),
            "PYTHONDONTWRITEBYTECODE": "1",
            "LLAMA_SIZE": "tiny",
            "LLAMA_CONTEXT": "16",
        }
        (tmp_path / "checkpoints").mkdir(exist_ok=True)
        done = subprocess.run(
            [sys.executable, str(LLAMA / "train.py"), *arguments],
            env={"PATH": os.environ["PATH"], **job, **env},
            capture_output=True,
            text=True,
        )
        assert done.returncode != 0
        return done.stderr.strip()

    return start


def test_right_input_comes_as_far_as_torch(train: Train) -> None:
    assert "No module named 'torch'" in train()


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"MAX_STEPS": "many"}, "argument --max-steps: invalid int value: 'many'."),
        ({"BATCH_SIZE": "0"}, "BATCH_SIZE is 0: give 1 or more."),
        ({"LEARNING_RATE": "nan"}, "LEARNING_RATE is nan: give 0 or more."),
        ({"LLAMA_SIZE": "7b"}, 'LLAMA_SIZE is "7b"; allowed: tiny, 125m, 1b, 8b.'),
        ({"COMPILE": "1"}, 'COMPILE is "1"; allowed: yes, no.'),
        ({"SHARD": "rack"}, 'SHARD is "rack"; allowed: all, node.'),
        ({"LLAMA_WIDTH": "100", "LLAMA_HEADS": "3"}, "LLAMA_WIDTH 100 cannot be cut into LLAMA_HEADS 3"),
        ({"LLAMA_KV_HEADS": "3"}, "LLAMA_HEADS 4 is no multiple of LLAMA_KV_HEADS 3"),
        ({"ACTIVATION_CHECKPOINTING": "0"}, 'ACTIVATION_CHECKPOINTING is "0"; allowed: none, full, or a'),
        ({"MIXED_PRECISION": "fp16"}, "train in fp32 by the argument --mixed-precision no"),
        ({"MIXED_PRECISION": "fp8"}, 'MIXED_PRECISION is "fp8"; allowed:'),
        ({"VOCAB_SIZE": "299"}, "has a vocabulary of 300 tokens and the model one of 299: give LLAMA_SIZE"),
        ({"LLAMA_CONTEXT": "100"}, "has 100 tokens in train, and LLAMA_CONTEXT (100) needs more"),
        ({"LLAMA_LAYERS": "9000000"}, "checkpoints need"),
    ],
)
def test_settings_that_make_no_sense_are_refused_in_one_line(
    train: Train, env: dict[str, str], said: str
) -> None:
    line = train(**env)
    assert said in line
    assert line.startswith("train.py on ")
    assert len(line.splitlines()) == 1


def test_an_argument_wins_over_the_environment(train: Train) -> None:
    assert "allowed: all, node" in train("--shard", "rack", SHARD="node")
    assert "No module named 'torch'" in train("--mixed-precision", "no", MIXED_PRECISION="fp16")


def checkpoint(tmp_path: Path, **noted: Any) -> Path:
    """A checkpoint that says so much about itself."""
    folder = tmp_path / "checkpoints" / "step-000007"
    folder.mkdir(parents=True)
    (folder / "progress.json").write_text(json.dumps(noted), encoding="utf-8")
    return folder


def test_a_checkpoint_of_another_model_or_data_is_refused_before_torch_is_loaded(
    load: Import, train: Train, tmp_path: Path
) -> None:
    shape = dataclasses.asdict(load("sizes").SIZES["tiny"])
    noted = {"step": 7, "tokens": 1, "world_size": 1, "data": "of other text"}
    folder = checkpoint(tmp_path, shape=shape | {"layers": 5}, **noted)
    assert f"{folder} holds another model (layers 5 instead of 2)" in train()
    (folder / "progress.json").write_text(json.dumps({"shape": shape, **noted}), encoding="utf-8")
    assert f"{folder} was trained on other data than" in train()
    (folder / "progress.json").write_text("{}", encoding="utf-8")
    assert f"{folder} is no checkpoint of this workload" in train()
