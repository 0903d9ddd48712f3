"""The docs site's navigation; `make site` checks the links and the pages."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from training_cluster.paths import ROOT


def test_new_workload_is_in_the_navigation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # MkDocs is installed in .venv-docs alone.
    monkeypatch.setitem(sys.modules, "mkdocs.structure.files", SimpleNamespace(File=None))
    hooks = importlib.import_module("tools.docs.site_hooks")
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text().split("\nnav:\n", 1)[1])
    for name in ("gpt2", "my-model"):
        (tmp_path / "assets" / "training" / name).mkdir(parents=True)
        (tmp_path / "assets" / "training" / name / "README.md").touch()
    monkeypatch.setattr(hooks, "ROOT", tmp_path)
    (before,) = [[*section["Workloads"]] for section in nav if "Workloads" in section]
    (after,) = [
        section["Workloads"] for section in hooks.on_config({"nav": nav})["nav"] if "Workloads" in section
    ]
    assert after == [*before, {"my-model": "workloads/my-model.md"}]
