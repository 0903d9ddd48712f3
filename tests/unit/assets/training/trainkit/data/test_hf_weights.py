"""Weights to start from: a folder, a bucket, the Hugging Face hub, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.assets.training.workload_modules import Import, workload_on_the_path


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    with workload_on_the_path(monkeypatch, "titan") as load:
        yield load


def test_weights_of_a_folder_are_checked(load: Import, tmp_path: Path) -> None:
    weights = load("trainkit.data.hf_weights")
    assert weights.find_weights("", data=tmp_path) is None
    with pytest.raises(weights.WeightsError, match=r"has no config\.json, tokenizer\.json, \*\.safetensors"):
        weights.find_weights(str(tmp_path), data=tmp_path)
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (tmp_path / name).write_text("{}")
    assert weights.find_weights(str(tmp_path), data=tmp_path) == tmp_path
    with pytest.raises(weights.WeightsError, match="allowed: ORGANISATION/NAME"):
        weights.find_weights("llama-3-8b", data=tmp_path)
