"""The pins of versions.yaml, what shells get of them, workloads' budgets, and the list of newer versions."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from training_cluster.catalog.versions import FILE, load_versions, render_versions, under
from training_cluster.paths import TRAINING
from training_cluster.problems import ConfigurationError


def changed(tmp_path: Path, pin: str, **values: Any) -> Path:
    """Write versions.yaml with other values of one pin."""
    loaded = yaml.safe_load(FILE.read_text())
    loaded["pins"][pin] |= values
    file = tmp_path / "versions.yaml"
    file.write_text(yaml.safe_dump(loaded))
    return file


def test_a_wrong_pin_is_refused_by_name(tmp_path: Path) -> None:
    for pin, values, said in (
        ("nvidia_driver", {"version": "590.48.01"}, "version 590.48.01 is after its ceiling 580"),
        ("nvidia_driver", {"sha256": None}, "a url that nothing verifies"),
        ("pyxis", {"comit": "0" * 40}, 'Did you mean "commit"?'),
        ("pyxis", {"recipes": ["tpu"]}, "pins.pyxis.recipes.0"),
        ("pyxis", {"version": "0.24.0'; rm -rf /"}, "pins.pyxis.version"),
        ("pyxis", {"url": "http://github.com/NVIDIA/pyxis"}, "pins.pyxis.url"),
    ):
        with pytest.raises(ConfigurationError, match=r"versions\.yaml: [12] problem") as refused:
            load_versions(changed(tmp_path, pin, **values))
        assert said in str(refused.value)
    file = changed(tmp_path, "nvidia_driver", sha256=None, confirmed=False)
    assert "export NVIDIA_DRIVER_SHA256=''\n" in render_versions(load_versions(file))


def test_a_ceiling_is_a_prefix_of_numbers() -> None:
    for version, ceiling, allowed in (
        ("580.159.04", "580", True),
        ("570.1", "580", True),
        ("590.1", "580", False),
        ("12.6.3", "12.6", True),
        ("12.10.0", "12.6", False),
        ("0.9.1", "0.16", True),
    ):
        assert under(version, ceiling) == allowed


def test_a_shell_reads_every_pin(tmp_path: Path) -> None:
    (tmp_path / "versions.env").write_text(render_versions())
    command = f'source {tmp_path}/versions.env; printf "%s\\n" "${{!NEURON_@}}" "$NVIDIA_DRIVER_VERSION"'
    done = subprocess.run(["bash", "-euc", command], capture_output=True, text=True, check=True)
    assert "export NVIDIA_DRIVER_URL='https://" in render_versions()
    assert "NEURON_KEY_FINGERPRINT" in done.stdout.split()
    assert done.stdout.splitlines()[-1] == load_versions().pins["nvidia_driver"].version
    assert all(re.fullmatch(r"export [A-Z0-9_]+='[^']*'", line) for line in render_versions().splitlines())


def test_pins_of_torch_and_cuda_agree() -> None:
    pins = load_versions().pins
    assert pins["nccl_cu12"].recipes == pins["cuda_toolkit"].recipes == ("volta",)
    assert pins["cuda_toolkit"].version.startswith("12.")
    line = pins["cuda_toolkit"].version.rsplit(".", 1)[0].replace(".", "")
    assert pins["torch_volta"].version.endswith(f"+cu{line}")
    assert f"export TORCH_VOLTA_INDEX='https://download.pytorch.org/whl/cu{line}'\n" in render_versions()
    wanted = {
        line.split()[0]
        for file in TRAINING.glob("*/requirements.txt")
        for line in file.read_text().splitlines()
        if line.startswith("torch==")
    }
    pins = load_versions().pins
    assert wanted == {f"torch=={pins['megatron_torch'].version}"}
    of_volta = pins["torch_volta"].version
    assert wanted == {f"torch=={of_volta.removesuffix('+cu126')}"}, "environment.sh refuses another one"
    script = (TRAINING / "bert-trainium" / "install.sh").read_text()
    found = re.search(r"\btorch-neuronx==(\d+\.\d+)\.", script)
    assert found
    for name in ("torch", "torch-xla"):
        assert re.search(rf"[ (]{name}=={re.escape(found[1])}\.\d+[ )]", script), name
