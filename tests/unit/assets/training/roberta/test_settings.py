"""Settings of roberta, and the command line that fairseq-train gets; neither torch nor fairseq is here."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.unit.assets.training.workload_modules import workload_on_the_path
from training_cluster.paths import TRAINING

ROBERTA = TRAINING / "roberta"
GPU = {"ACCELERATOR_KIND": "gpu", "MIXED_PRECISION": "fp16"}


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    for name in ("ACCELERATOR_KIND", "DEVICE", "MIXED_PRECISION"):
        monkeypatch.delenv(name, raising=False)
    with workload_on_the_path(monkeypatch, "roberta") as load:
        yield load("settings")


def read(settings: ModuleType, environment: dict[str, str], *arguments: str) -> Any:
    with pytest.MonkeyPatch.context() as patched:
        for name, value in environment.items():
            patched.setenv(name, value)
        return settings.read_settings(arguments)


def command(settings: ModuleType, environment: dict[str, str], *arguments: str, **place: Any) -> list[str]:
    where = {"data": Path("/d"), "save_dir": Path("/c"), "restore_file": None}
    rank = {"rank": 9, "local_rank": 1, "world_size": 16}
    given = read(settings, environment, *arguments)
    built: list[str] = settings.fairseq_arguments(given, **(where | rank | place))
    return built


def option(arguments: list[str], name: str) -> str:
    return arguments[arguments.index(f"--{name}") + 1]


def test_the_world_is_told_to_fairseq_explicitly(settings: ModuleType) -> None:
    built = command(settings, GPU)
    assert built[0] == "/d"
    told = {
        "distributed-world-size": "16",
        "distributed-rank": "9",
        "distributed-init-method": "env://",
        "distributed-backend": "nccl",
        "device-id": "1",
        "ddp-backend": "c10d",
    }
    assert {name: option(built, name) for name in told} == told
    assert "--distributed-no-spawn" in built
    assert "--cpu" not in built


def test_without_a_setting_it_is_the_walk_throughs_roberta_large(settings: ModuleType) -> None:
    built = command(settings, GPU)
    told = {
        "arch": "roberta_large",
        "encoder-layers": "24",
        "encoder-embed-dim": "1024",
        "encoder-ffn-embed-dim": "4096",
        "tokens-per-sample": "512",
        "batch-size": "8",
        "update-freq": "1",
        "lr": "0.0006",
        "warmup-updates": "24000",
        "max-update": "500",
        "weight-decay": "0.01",
        "dropout": "0.1",
    }
    assert {name: option(built, name) for name in told} == told
    assert built[-2:] == ["--fp16", "--memory-efficient-fp16"]


@pytest.mark.parametrize(
    ("precision", "flags"),
    [("fp16", {"--fp16", "--memory-efficient-fp16"}), ("bf16", {"--bf16"}), ("no", set())],
)
def test_the_precision_is_the_familys(settings: ModuleType, precision: str, flags: set[str]) -> None:
    built = command(settings, GPU | {"MIXED_PRECISION": precision})
    assert {part for part in built if part.startswith(("--fp16", "--bf16", "--memory"))} == flags


def test_cpus_take_gloo(settings: ModuleType) -> None:
    built = command(settings, {"ACCELERATOR_KIND": "none"})
    assert (option(built, "distributed-backend"), option(built, "ddp-backend")) == ("gloo", "legacy_ddp")
    assert "--cpu" in built
    built = command(settings, {"ACCELERATOR_KIND": "gpu", "DEVICE": "cpu"})
    assert "--cpu" in built


def test_a_resume_names_its_file_and_a_first_start_none(settings: ModuleType) -> None:
    assert "--restore-file" not in command(settings, GPU)
    file = Path("/c/step-000100/checkpoint.pt")
    assert option(command(settings, GPU, restore_file=file), "restore-file") == str(file)


def test_no_validation_batch_means_no_validation(settings: ModuleType) -> None:
    # fairseq counts one more than it is told.
    assert option(command(settings, GPU | {"EVAL_BATCHES": "4"}), "max-valid-steps") == "3"
    assert "--disable-validation" in command(settings, GPU | {"EVAL_BATCHES": "0"})


def test_an_argument_wins_over_the_environment_and_that_over_the_default(settings: ModuleType) -> None:
    assert read(settings, {}).seed == 1
    assert read(settings, {"SEED": "2"}).seed == 2
    assert read(settings, {"SEED": ""}).seed == 1
    assert read(settings, {"SEED": "2"}, "--seed", "3").seed == 3


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"MAX_STEPS": "many"}, "argument --max-steps: invalid int value: 'many'"),
        ({"MAX_STEPS": "0"}, "MAX_STEPS is 0: give 1 or more."),
        ({"SEED": "-1"}, "SEED is -1"),
        ({"MIXED_PRECISION": "fp8"}, 'MIXED_PRECISION is "fp8"; allowed: bf16, fp16, no.'),
        ({"DEVICE": "tpu"}, 'DEVICE is "tpu"; allowed: cpu, cuda.'),
        ({"CORPUS": "wikitext"}, 'CORPUS is "wikitext"; allowed: wikitext-103, machine, raw.'),
        ({"VOCAB_SIZE": "256"}, "VOCAB_SIZE is '256': give a whole number from 300 to 1000000"),
        ({"ROBERTA_HEADS": "15"}, "ROBERTA_WIDTH 1024 is not a multiple of ROBERTA_HEADS 15"),
    ],
)
def test_a_wrong_setting_is_one_sentence(
    settings: ModuleType, environment: dict[str, str], said: str
) -> None:
    with pytest.raises(SystemExit) as told:
        read(settings, environment)
    assert said in str(told.value)
    assert "\n" not in str(told.value)


def test_an_unknown_argument_is_refused(settings: ModuleType) -> None:
    with pytest.raises(SystemExit, match="unrecognized arguments: --sede 1"):
        read(settings, {}, "--sede", "1")


def test_the_size_of_roberta_large_is_the_published_one(settings: ModuleType) -> None:
    # 355.4 million with the output layer; Hugging Face's count is 1,024 more, for its one type of tokens.
    large = read(settings, {})
    assert settings.parameters(large, 50265) == 355_411_033
    # The output layer works for 15 % of the tokens only.
    assert settings.computing_parameters(large, 50265) == 302_309_376 + 7_877_990


def test_your_own_text_comes_before_wikitext_and_what_is_asked_for_before_both(
    settings: ModuleType, tmp_path: Path
) -> None:
    assert settings.choose_corpus("", data=tmp_path) == "wikitext-103"
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "mine.txt").write_text("text\n")
    assert settings.choose_corpus("", data=tmp_path) == "raw"
    assert settings.choose_corpus("machine", data=tmp_path) == "machine"


def test_another_vocabulary_or_corpus_is_other_data(settings: ModuleType) -> None:
    names = {
        settings.data_folder(Path("/d"), corpus=corpus, vocab_size=size).name
        for corpus in ("machine", "raw")
        for size in (2048, 50257)
    }
    assert names == {"machine-bpe-2048", "machine-bpe-50257", "raw-bpe-2048", "raw-bpe-50257"}


def test_a_rehearsal_changes_sizes_and_device_and_nothing_else(settings: ModuleType) -> None:
    fields = {field.name.upper() for field in dataclasses.fields(settings.Settings)}
    names = set(re.findall(r"^export (\w+)=", (ROBERTA / "rehearsal.env").read_text(), flags=re.MULTILINE))
    assert "MAX_STEPS" in names & fields
    assert names - fields == {"NPROC_PER_NODE", "OMP_NUM_THREADS"}
    assert not names & {"MAX_RESTARTS", "SEED", "WEIGHT_DECAY", "ROBERTA_DROPOUT"}
