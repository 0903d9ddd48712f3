"""The catalog's workloads: their headers, and the time that their environments take."""

import re
from pathlib import Path

import pytest

from training_cluster.catalog.workloads import environments_budget_s, load_workloads, workloads_of
from training_cluster.problems import ConfigurationError


def workload(tmp_path: Path, header: str, install: str | None = None) -> Path:
    folder = tmp_path / "bert"
    folder.mkdir()
    (folder / "requirements.txt").write_text(f"{header}torch==2.13.0\n# Budget: 9999 s\n")
    if install is not None:
        (folder / "install.sh").write_text(install)
    return tmp_path


def test_a_budget_is_of_packages_and_compilations(tmp_path: Path) -> None:
    install = "#!/usr/bin/env bash\n# Moment: image\n# Budget: 900 s\n"
    training = workload(tmp_path, "# BERT.\n# Recipes: neuron\n# Budget: 300 s\n", install)
    found = load_workloads(training)["bert"]
    assert (found.budget_s, found.recipes, found.image_only) == (1200, ("neuron",), True)
    assert environments_budget_s(("bert",), training) == 1200
    assert environments_budget_s((), training) == 0
    assert workloads_of("neuron", training=training) == ("bert",)
    assert workloads_of("gpu", training=training) == ()


def test_workloads_take_the_systems_python(tmp_path: Path) -> None:
    training = workload(tmp_path, "# Recipes: gpu\n# Pythons: 3.11 3.12\n# Budget: 300 s\n")
    assert workloads_of("gpu", "ubuntu2404", training) == ("bert",)
    assert workloads_of("gpu", "alinux2023", training) == ("bert",)
    assert workloads_of("gpu", "ubuntu2204", training) == ()


@pytest.mark.parametrize(
    ("header", "install", "said"),
    [
        ("# Recipes: all\n", None, "requirements.txt: its header states no budget"),
        ("# Recipes: all\n# Budget: 5 min\n", None, "add `# Budget: 300 s`"),
        ("# Budget: 300 s\n", None, "no line `# Recipes: gpu cpu`"),
        ("# Recipes: gpu tpu\n# Budget: 300 s\n", None, '"tpu" is not a recipe'),
        ("# Recipes: all\n# Budget: 300 s\n", "echo\n", "install.sh: its header states no budget"),
    ],
)
def test_a_header_that_says_too_little_is_refused(
    tmp_path: Path, header: str, install: str | None, said: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        load_workloads(workload(tmp_path, header, install))


def test_an_unknown_workload_is_refused(tmp_path: Path) -> None:
    training = workload(tmp_path, "# Recipes: all\n# Budget: 300 s\n")
    with pytest.raises(ConfigurationError, match=r'no workload "gpt9".*Allowed: bert'):
        environments_budget_s(("gpt9",), training)
