"""The machine on which the figures were measured."""

import json
import subprocess

import pytest

from bench.measuring import machine


def test_a_machine_has_cores_memory_and_the_versions_of_packages_as_json_holds_them() -> None:
    found = json.loads(json.dumps(machine.describe_machine()))
    assert found["cores"] >= 1
    assert found["threads"] >= found["cores"]
    assert found["packages"]["aws-cdk-lib"].startswith("2.")


@pytest.mark.parametrize(("code", "gpu"), [(0, "NVIDIA H200"), (9, None)])
def test_a_gpu_is_the_first_that_the_driver_names(
    code: int, gpu: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        said = "NVIDIA H200\nNVIDIA H200\n" if command[0] == "nvidia-smi" else ""
        return subprocess.CompletedProcess(command, code, stdout=said)

    monkeypatch.setattr("bench.measuring.machine.shutil.which", lambda _: "/usr/bin/nvidia-smi")
    monkeypatch.setattr("bench.measuring.machine.subprocess.run", answer)
    assert machine.describe_machine()["gpu"] == gpu
