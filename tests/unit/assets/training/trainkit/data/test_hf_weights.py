"""Weights to start from: a folder, a bucket, the Hugging Face hub, and what is wrong with them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.assets.training.hub_server import COMMIT, Hub, hub_server
from tests.unit.assets.training.workload_modules import Import, workload_on_the_path

FILES = (
    "config.json",
    "model-1-of-2.safetensors",
    "model-2-of-2.safetensors",
    "tokenizer.json",
)


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


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with one model, and pictures and other formats that nobody wants."""
    model = tmp_path / "hub" / "models" / "org" / "model"
    (model / "original").mkdir(parents=True)
    for name in (*FILES, "loss.png", "pytorch_model.bin", "original/params.json"):
        (model / name).write_bytes(name.encode() * 100)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with hub_server(tmp_path / "hub") as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running


def test_weights_of_the_hub_are_resumed_and_kept(load: Import, served: Hub, tmp_path: Path) -> None:
    weights, folder = load("trainkit.data.hf_weights"), tmp_path / "models" / "org--model@v1"
    folder.mkdir(parents=True)
    (folder / f".{FILES[1]}.part").write_bytes(FILES[1].encode() * 50)
    for _ in range(2):
        assert weights.find_weights("org/model@v1", data=tmp_path) == folder
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {
        weights.STAMP: f"{COMMIT}\n".encode(),
        **{name: name.encode() * 100 for name in FILES},
    }
    root = f"/org/model/resolve/{COMMIT}"
    ranges = dict.fromkeys(FILES, "") | {FILES[1]: f"bytes={50 * len(FILES[1])}-"}
    assert sorted(served.requests) == [(f"{root}/{name}", asked) for name, asked in ranges.items()]


def test_damaged_weights_are_refused(load: Import, served: Hub, tmp_path: Path) -> None:
    weights, part = load("trainkit.data.hf_weights"), tmp_path / "models" / "org--model" / f".{FILES[1]}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"X" * 100 * len(FILES[1]))
    with pytest.raises(weights.WeightsError, match=r"org/model cannot be downloaded .* its sha256 is"):
        weights.find_weights("org/model", data=tmp_path)
    assert not (part.parent / weights.STAMP).exists()


def test_refusals_of_the_hub_say_what_to_do(
    load: Import, served: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = load("trainkit.data.hf_weights")
    with pytest.raises(weights.WeightsError, match="hub has no org/none@v2 that this token may see"):
        weights.find_weights("org/none@v2", data=tmp_path)
    served.token = "secret"
    with pytest.raises(weights.WeightsError, match="org/model is gated: accept its terms"):
        weights.find_weights("org/model", data=tmp_path)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "token").write_text("secret\n")
    assert weights.find_weights("org/model", data=tmp_path)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(weights.WeightsError, match=r"cannot be downloaded \(could not fetch .*INIT_FROM="):
        weights.find_weights("org/other", data=tmp_path)
