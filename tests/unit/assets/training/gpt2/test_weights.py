"""The weights that gpt2 begins with: published ones, fetched once, or a sentence."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.assets.training.trainkit.data.hub_server import Hub, hub_server
from tests.unit.assets.training.workload_modules import Import, workload_on_the_path


@pytest.fixture(autouse=True)
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    with workload_on_the_path(monkeypatch, "gpt2") as load:
        yield load


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with GPT-2's weights."""
    model = tmp_path / "hub" / "models" / "openai-community" / "gpt2"
    model.mkdir(parents=True)
    for name in ("config.json", "tokenizer.json", "model.safetensors", "pytorch_model.bin"):
        (model / name).write_bytes(f"{name} of GPT-2".encode())
    with hub_server(tmp_path / "hub") as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running


def test_published_weights_are_fetched_once(load: Import, served: Hub, tmp_path: Path) -> None:
    weights = load("weights")
    for _ in range(2):
        folder = weights.find_weights("gpt2", data=tmp_path, bucket=None, say=lambda _: None)
        assert folder == tmp_path / "models" / "gpt2"
    assert sorted(file.name for file in folder.iterdir()) == sorted(weights.FILES)
    assert len(served.requests) == 3


def test_weights_that_cannot_be_had_are_told_with_the_place_to_put_them(
    load: Import, served: Hub, tmp_path: Path
) -> None:
    weights = load("weights")
    with pytest.raises(weights.WeightsError, match=r"(?s)are not available: .*404.*INIT_FROM=scratch"):
        weights.find_weights("nobody/nothing", data=tmp_path, bucket=None)
    (served.folder / "models" / "openai-community" / "gpt2" / "model.safetensors").unlink()
    with pytest.raises(weights.WeightsError, match=r"openai-community/gpt2 has no model.safetensors"):
        weights.find_weights("gpt2", data=tmp_path, bucket=None)
    assert not (tmp_path / "models").exists()


@pytest.mark.parametrize(
    ("init_from", "said"),
    [
        (
            "/nowhere",
            r"INIT_FROM=/nowhere: /nowhere has no config.json; a folder of weights has config.json, ",
        ),
        (
            "a b",
            r'INIT_FROM is "a b"; allowed: scratch, a name on the Hugging Face hub such as gpt2, or the path',
        ),
    ],
)
def test_weights_that_make_no_sense_are_refused(
    load: Import, tmp_path: Path, init_from: str, said: str
) -> None:
    weights = load("weights")
    with pytest.raises(weights.WeightsError, match=said):
        weights.find_weights(init_from, data=tmp_path, bucket=None)
    assert weights.find_weights("scratch", data=tmp_path, bucket=None) is None
