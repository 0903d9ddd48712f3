"""Weights and batches of gpt2; torch is not here."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.assets.training.trainkit.data.hub_server import Hub, hub_server
from tests.unit.assets.training.workload_modules import Import


def test_each_step_has_the_batches_of_its_position(load: Import) -> None:
    for is_on in (True, False):
        with load("ahead").Ahead(lambda first: [first, first + 1], sequences=10, is_on=is_on) as reader:
            assert [reader.batches(first) for first in (30, 40, 50)] == [[30, 31], [40, 41], [50, 51]]
            assert reader.batches(7) == [7, 8], "a position that does not follow"


def test_the_next_step_is_read_ahead(load: Import) -> None:
    read, second = list[int](), threading.Event()

    def note(first: int) -> int:
        read.append(first)
        if first == 10:
            second.set()
        if first == 20:
            raise OSError("the file system is gone")
        return first

    with load("ahead").Ahead(note, sequences=10, is_on=True) as reader:
        assert reader.batches(0) == 0
        assert second.wait(10)
        assert read == [0, 10]
        assert reader.batches(10) == 10
        with pytest.raises(OSError, match="is gone"):
            reader.batches(20)


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


def test_missing_weights_are_told_with_a_way(load: Import, served: Hub, tmp_path: Path) -> None:
    weights = load("weights")
    (served.folder / "models" / "openai-community" / "gpt2" / "model.safetensors").unlink()
    for init_from, said in {
        "nobody/nothing": r"(?s)are not available: .*404.*INIT_FROM=scratch",
        "gpt2": r"openai-community/gpt2 has no model.safetensors",
        "/nowhere": r"INIT_FROM=/nowhere: /nowhere has no config.json; a folder of weights has config.json, ",
        "a b": r'INIT_FROM is "a b"; allowed: scratch, a name on the Hugging Face hub such as gpt2, or the p',
    }.items():
        with pytest.raises(weights.WeightsError, match=said):
            weights.find_weights(init_from, data=tmp_path, bucket=None)
    assert not (tmp_path / "models").exists()
    assert weights.find_weights("scratch", data=tmp_path, bucket=None) is None
