"""The pins of versions.yaml, what shells get of them, workloads' budgets, and the list of newer versions."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools import outdated
from tools.docs import steps_table
from tools.pinned import Pinned, find_all
from training_cluster.catalog.families import family_names
from training_cluster.catalog.versions import FILE, capabilities, load_versions, render_versions, under
from training_cluster.catalog.workloads import environments_budget_s, load_workloads, workloads_of
from training_cluster.problems import ConfigurationError


def changed(tmp_path: Path, pin: str, **values: Any) -> Path:
    """Write versions.yaml with other values of one pin."""
    loaded = yaml.safe_load(FILE.read_text())
    loaded["pins"][pin] |= values
    file = tmp_path / "versions.yaml"
    file.write_text(yaml.safe_dump(loaded))
    return file


def test_versions_are_no_family() -> None:
    assert FILE.is_file()
    assert "versions" not in family_names()


@pytest.mark.parametrize(
    ("pin", "values", "said"),
    [
        ("nvidia_driver", {"version": "590.48.01"}, "version 590.48.01 is after its ceiling 580"),
        ("nvidia_driver", {"sha256": None}, "a url that nothing verifies"),
        ("nvidia_driver", {"sha256": "c1e6"}, "pins.nvidia_driver.sha256"),
        ("pyxis", {"comit": "0" * 40}, 'Did you mean "commit"?'),
        ("pyxis", {"recipes": ["tpu"]}, "pins.pyxis.recipes.0"),
        ("pyxis", {"version": "0.24.0'; rm -rf /"}, "pins.pyxis.version"),
        ("pyxis", {"url": "http://github.com/NVIDIA/pyxis"}, "pins.pyxis.url"),
        ("pyxis", {"lookup": "gitlab:a/b"}, "pins.pyxis.lookup"),
        ("torch_volta", {"index": "http://download.pytorch.org/whl/cu126"}, "pins.torch_volta.index"),
        ("torch_volta", {"version": "2.15.0+cu126"}, "version 2.15.0+cu126 is after its ceiling 2.14"),
    ],
)
def test_a_pin_that_cannot_be_is_refused_by_name(
    tmp_path: Path, pin: str, values: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=r"versions\.yaml: [12] problem") as refused:
        load_versions(changed(tmp_path, pin, **values))
    assert said in str(refused.value)


def test_a_pin_without_a_checksum_may_be_said_to_be_unconfirmed(tmp_path: Path) -> None:
    file = changed(tmp_path, "nvidia_driver", sha256=None, confirmed=False)
    assert "export NVIDIA_DRIVER_SHA256=''\n" in render_versions(load_versions(file))


@pytest.mark.parametrize(
    ("version", "ceiling", "allowed"),
    [
        ("580.159.04", "580", True),
        ("570.1", "580", True),
        ("590.1", "580", False),
        ("12.6.3", "12.6", True),
        ("12.10.0", "12.6", False),
        ("0.9.1", "0.16", True),
    ],
)
def test_a_ceiling_is_a_prefix_of_numbers(version: str, ceiling: str, allowed: bool) -> None:
    assert under(version, ceiling) == allowed


def test_a_shell_reads_every_pin(tmp_path: Path) -> None:
    (tmp_path / "versions.env").write_text(render_versions())
    command = f'source {tmp_path}/versions.env; printf "%s\\n" "${{!NEURON_@}}" "$NVIDIA_DRIVER_VERSION"'
    done = subprocess.run(["bash", "-euc", command], capture_output=True, text=True, check=True)
    assert "NEURON_KEY_FINGERPRINT" in done.stdout.split()
    assert done.stdout.splitlines()[-1] == load_versions().pins["nvidia_driver"].version
    assert all(re.fullmatch(r"export [A-Z0-9_]+='[^']*'", line) for line in render_versions().splitlines())


def test_a_recipe_compiles_for_the_gpus_of_all_its_families() -> None:
    assert capabilities("volta") == ["7.0"]
    assert capabilities("gpu") == ["8.0", "8.6", "8.9", "9.0", "10.0", "10.3"]
    assert capabilities("neuron") == capabilities("cpu") == []


def test_a_cuda_wheel_and_its_image_are_of_one_major_version() -> None:
    pins = load_versions().pins
    assert pins["nccl_cu12"].recipes == pins["cuda_toolkit"].recipes == ("volta",)
    assert pins["cuda_toolkit"].version.startswith("12.")
    line = pins["cuda_toolkit"].version.rsplit(".", 1)[0].replace(".", "")
    assert pins["torch_volta"].version.endswith(f"+cu{line}")
    assert f"export TORCH_VOLTA_INDEX='https://download.pytorch.org/whl/cu{line}'\n" in render_versions()


def test_extensions_are_compiled_for_the_torch_that_workloads_ask_for() -> None:
    wanted = {
        line.split()[0]
        for file in (FILE.parents[1] / "assets" / "training").glob("*/requirements.txt")
        for line in file.read_text().splitlines()
        if line.startswith("torch==")
    }
    pins = load_versions().pins
    assert wanted == {f"torch=={pins['megatron_torch'].version}"}
    of_volta = pins["torch_volta"].version
    assert wanted == {f"torch=={of_volta.removesuffix('+cu126')}"}, "environment.sh refuses another one"


def workload(tmp_path: Path, header: str, install: str | None = None) -> Path:
    folder = tmp_path / "bert"
    folder.mkdir()
    (folder / "requirements.txt").write_text(f"{header}torch==2.13.0\n# Budget: 9999 s\n")
    if install is not None:
        (folder / "install.sh").write_text(install)
    return tmp_path


def test_a_workloads_budget_is_that_of_its_packages_and_of_what_it_compiles(tmp_path: Path) -> None:
    install = "#!/usr/bin/env bash\n# Moment: image\n# Budget: 900 s\n"
    training = workload(tmp_path, "# BERT.\n# Recipes: neuron\n# Budget: 300 s\n", install)
    found = load_workloads(training)["bert"]
    assert (found.budget_s, found.recipes, found.image_only) == (1200, ("neuron",), True)
    assert environments_budget_s(("bert",), training) == 1200
    assert environments_budget_s((), training) == 0
    assert workloads_of("neuron", training) == ("bert",)
    assert workloads_of("gpu", training) == ()


@pytest.mark.parametrize(
    ("header", "install", "said"),
    [
        ("# Recipes: all\n", None, "requirements.txt: its header states no budget"),
        ("# Recipes: all\n# Budget: 5 min\n", None, "add `# Budget: 300 s`"),
        ("# Budget: 300 s\n", None, "no line `# Recipes: gpu cpu`"),
        ("# Recipes: gpu tpu\n# Budget: 300 s\n", None, '"tpu" is no recipe'),
        ("# Recipes: all\n# Budget: 300 s\n", "echo\n", "install.sh: its header states no budget"),
    ],
)
def test_a_header_that_says_too_little_is_refused(
    tmp_path: Path, header: str, install: str | None, said: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        load_workloads(workload(tmp_path, header, install))


def test_an_unknown_workload_is_refused_and_those_that_there_are_are_named(tmp_path: Path) -> None:
    training = workload(tmp_path, "# Recipes: all\n# Budget: 300 s\n")
    with pytest.raises(ConfigurationError, match=r'no workload "gpt9".*Allowed: bert'):
        environments_budget_s(("gpt9",), training)


def test_every_real_workload_has_a_header() -> None:
    assert load_workloads()["gpt2"].recipes == ("gpu", "volta", "cpu")


def test_the_readmes_table_is_that_of_the_steps() -> None:
    assert steps_table.render() in steps_table.README.read_text(), "run: python -m tools.docs.steps_table"


def pin(lookup: str, version: str = "1.0", ceiling: str = "", noted: str = "") -> Pinned:
    return Pinned(
        name="it", version=version, where="here", lookup=lookup, reason="why", ceiling=ceiling, noted=noted
    )


def rows(*pins: Pinned) -> list[dict[str, str]]:
    return outdated.look_up(list(pins), say=lambda _: None)


@pytest.fixture
def publishers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace PyPI by three versions of each name, and npm by errors; return the requested names."""
    asked: list[str] = []

    def answers(name: str) -> list[str]:
        asked.append(name)
        return ["1.9", "1.10", "2.0rc1", "v1.2", "1.11.dev3"]

    def silent(name: str) -> list[str]:
        asked.append(name)
        raise OSError("no way")

    monkeypatch.setattr(outdated, "_SOURCES", {"pypi": answers, "npm": silent})
    return asked


def test_the_newest_is_a_release_and_by_number(publishers: list[str]) -> None:
    (row,) = rows(pin("pypi:it"))
    assert (row["newest"], row["state"], row["why"]) == ("1.10", "older", "why")
    (row,) = rows(pin("pypi:it", version="1.10"))
    assert row["state"] == "newest"


def test_a_ceiling_shows_what_may_still_be_taken(publishers: list[str]) -> None:
    (row,) = rows(pin("pypi:it", ceiling="1.9"))
    assert (row["newest"], row["below ceiling"]) == ("1.10", "1.9")


def test_who_cannot_be_reached_or_asked_is_said_and_the_others_are_listed(publishers: list[str]) -> None:
    listed = rows(pin("npm:it"), pin(""), pin("", noted="1.1"), pin("pypi:it"))
    assert [row["newest"] for row in listed] == ["not reached", "nobody to ask", "1.1 (noted)", "1.10"]
    assert "0 are the newest, 2 are older, 2 are not known" in outdated.show(listed, every=False)


def test_a_publisher_is_asked_once_for_a_name(publishers: list[str]) -> None:
    rows(pin("pypi:it"), pin("pypi:it", version="1.9"))
    assert publishers == ["it"]


def test_a_publisher_that_answers_nonsense_is_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    def nonsense(name: str) -> list[str]:
        return list(json.loads("<html>"))

    monkeypatch.setattr(outdated, "_SOURCES", {"pypi": nonsense})
    (row,) = rows(pin("pypi:it"))
    assert row["newest"] == "not reached"


def test_everything_pinned_is_found() -> None:
    found = {(each.where, each.name) for each in find_all()}
    assert {
        ("cluster_configs/versions.yaml", "nvidia_driver"),
        ("requirements.txt", "aws-cdk-lib"),
        ("requirements-dev.txt", "moto"),
        ("requirements-pcluster.txt", "aws-parallelcluster"),
        ("assets/training/gpt2/requirements.txt", "torch"),
        ("package.json", "aws-cdk"),
    } <= found
