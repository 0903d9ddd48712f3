"""Settings of roberta, and the command line that fairseq-train gets; neither torch nor fairseq is here."""

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.unit.assets.training.workload_modules import Import

GPU = {"ACCELERATOR_KIND": "gpu", "MIXED_PRECISION": "fp16"}


@pytest.fixture
def settings(load: Import, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    for name in ("ACCELERATOR_KIND", "DEVICE", "MIXED_PRECISION"):
        monkeypatch.delenv(name, raising=False)
    return load("settings")


def read(settings: ModuleType, environment: dict[str, str]) -> Any:
    with pytest.MonkeyPatch.context() as patched:
        for name, value in environment.items():
            patched.setenv(name, value)
        return settings.read_settings([])


def command(settings: ModuleType, environment: dict[str, str], **place: Any) -> list[str]:
    where = {"data": Path("/d"), "save_dir": Path("/c"), "restore_file": None}
    rank = {"rank": 9, "local_rank": 1, "world_size": 16}
    built: list[str] = settings.fairseq_arguments(read(settings, environment), **(where | rank | place))
    return built


def option(arguments: list[str], name: str) -> str:
    return arguments[arguments.index(f"--{name}") + 1]


def test_fairseq_is_told_the_world_and_precision(settings: ModuleType) -> None:
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
    for precision, flags in (
        ("fp16", {"--fp16", "--memory-efficient-fp16"}),
        ("bf16", {"--bf16"}),
        ("no", set[str]()),
    ):
        built = command(settings, GPU | {"MIXED_PRECISION": precision})
        assert {part for part in built if part.startswith(("--fp16", "--bf16", "--memory"))} == flags
    for cpu in ({"ACCELERATOR_KIND": "none"}, {"ACCELERATOR_KIND": "gpu", "DEVICE": "cpu"}):
        built = command(settings, cpu)
        assert (option(built, "distributed-backend"), option(built, "ddp-backend")) == ("gloo", "legacy_ddp")
        assert "--cpu" in built


def test_a_resume_names_its_file_and_validations(settings: ModuleType) -> None:
    assert "--restore-file" not in command(settings, GPU)
    file = Path("/c/step-000100/checkpoint.pt")
    assert option(command(settings, GPU, restore_file=file), "restore-file") == str(file)
    # fairseq counts one more than it is told.
    ranks = int(option(command(settings, GPU), "distributed-world-size"))
    few = GPU | {"EVAL_SEQUENCES": str(4 * ranks * 8 - 1)}
    assert option(command(settings, few), "max-valid-steps") == "3"
    assert "--disable-validation" in command(settings, GPU | {"EVAL_SEQUENCES": "0"})


def test_roberta_large_has_its_published_size(settings: ModuleType) -> None:
    # 355.4 million with the output layer; Hugging Face's count is 1,024 more, for its one type of tokens.
    large = read(settings, {})
    assert settings.parameters(large, 50265) == 355_411_033
    # The output layer works for 15 % of the tokens only.
    assert settings.computing_parameters(large, 50265) == 302_309_376 + 7_877_990


def test_a_checkpoint_of_another_dictionary_is_refused(settings: ModuleType) -> None:
    folder, progress = Path("/c/step-000100"), {"step": 100, "dictionary_sha256": "1"}
    settings.check_checkpoint(folder, progress, dictionary_sha256="1")
    with pytest.raises(SystemExit, match=f"{folder} was trained with another dict.txt"):
        settings.check_checkpoint(folder, progress, dictionary_sha256="2")
