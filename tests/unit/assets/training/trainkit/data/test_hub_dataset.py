"""Data sets of a hub on this machine as shards: their splits, an outage midway, and what is refused."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from trainkit.data.hub_text import HUB_NAME, HubDataset
from trainkit.data.shards import ShardError
from trainkit.data.text_shards import TextShards
from trainkit.data.tokenize_unit import Recipe, Unit

from tests.unit.assets.training.trainkit.data.hub_server import COMMIT, Hub, hub_server
from tests.unit.assets.training.workload_modules import Letters

REPOSITORY = "org/texts"
SPLITS = {"train": ["data/a.jsonl", "data/b.jsonl"], "test": ["data/c.jsonl"]}


class Lettered(TextShards):
    """Shards whose tokens are bytes."""

    def recipe(self, units: tuple[Unit, ...]) -> Recipe:
        return self.recipe_with(Letters(), units, vocab_size=257, tokenizer_sha256="", source={})


@pytest.fixture
def splits(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The splits that a stand-in of the package `datasets` finds; a nightly test has the real one."""
    found = dict(SPLITS)

    def load_dataset_builder(repository: str, _configuration: str | None, *, revision: str) -> Any:
        root = f"hf://datasets/{repository}@{revision}/"
        files = {
            split: [each if "://" in each else root + each for each in of] for split, of in found.items()
        }
        return SimpleNamespace(config=SimpleNamespace(data_files=files))

    stand_in = SimpleNamespace(load_dataset_builder=load_dataset_builder)
    monkeypatch.setitem(sys.modules, "datasets", stand_in)
    return found


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with a data set of three files, of ten rows each."""
    folder = tmp_path / "hub" / "datasets" / REPOSITORY / "data"
    folder.mkdir(parents=True)
    for name in "abc":
        rows = [json.dumps({"text": f"{name} {number}"}) + "\n" for number in range(10)]
        (folder / f"{name}.jsonl").write_text("".join(rows))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    with hub_server(tmp_path / "hub") as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running


def shards(data: Path, name: str = REPOSITORY) -> Lettered:
    published = HubDataset.named(name, suffixes=TextShards.suffixes)
    return Lettered(data=data, name=published.name, published=published, vocab_size=257, validation_every=5)


def test_names_have_configuration_and_revision() -> None:
    named = HubDataset.named("org/name/en@v1.0", suffixes=())
    assert (named.repository, named.configuration, named.revision) == ("org/name", "en", "v1.0")
    assert named.name == "hub--org--name--en@v1.0"
    assert HubDataset.named("org/name", suffixes=()).revision == "main"
    assert not any(
        HUB_NAME.fullmatch(each) for each in ("../name", "org", "org/name/en/more", "hf:org/name", "/org/n")
    )


def test_a_split_is_held_back_or_documents_are(
    served: Hub, splits: dict[str, list[str]], tmp_path: Path
) -> None:
    def found() -> list[tuple[str, str]]:
        return [(unit.name, unit.split) for unit in shards(tmp_path).units()]

    assert found() == [("data/a.jsonl", "train"), ("data/b.jsonl", "train"), ("data/c.jsonl", "val")]
    splits["validation"] = splits.pop("train")[1:]
    splits["train"] = ["data/a.jsonl"]
    assert found() == [("data/a.jsonl", "train"), ("data/b.jsonl", "val")]
    splits.clear()
    splits["train"] = SPLITS["train"]
    assert found() == [("data/a.jsonl", ""), ("data/b.jsonl", "")]
    splits |= {"train_sft": ["data/b.jsonl"], "test_sft": ["data/c.jsonl"]}
    text = HubDataset.named(REPOSITORY, suffixes=(".jsonl",), task="sft")
    assert [unit.name for unit in text.units(tmp_path)] == ["data/b.jsonl", "data/c.jsonl"]


def test_what_cannot_be_read_is_refused(
    served: Hub, splits: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=0))
    with pytest.raises(ShardError, match=r"remove old runs there, or stream it \(DATA=hf:org/texts\)"):
        shards(tmp_path).ensure(None)

    def refuses(sentence: str) -> None:
        with pytest.raises(ShardError, match=re.escape(sentence)):
            shards(tmp_path).units()

    splits["train"] = ["data/a.csv"]
    refuses("org/texts has data/a.csv, and what is read is *.txt, *.jsonl, *.parquet: convert it into")
    splits["train"] = ["hf://datasets/org/other/a.jsonl"]
    refuses("org/texts has hf://datasets/org/other/a.jsonl, and what is read is")
    del splits["train"]
    refuses("org/texts has the splits test, and none is train: download what you want")
    with pytest.raises(
        ShardError, match=r"DATA=org/none cannot be read \(.*404.*give HF_TOKEN if it is gated"
    ):
        shards(tmp_path, "org/none").units()
    monkeypatch.delitem(sys.modules, "datasets")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    refuses("give the nodes access to the hub (NAT, or HF_ENDPOINT).")


@pytest.mark.slow
def test_an_outage_midway_costs_no_finished_file(
    served: Hub, splits: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREPARE_WORKERS", "1")
    data, last = tmp_path / "data", served.folder / "datasets" / REPOSITORY / "data" / "c.jsonl"
    units = HubDataset.named(REPOSITORY, suffixes=TextShards.suffixes).units(data)
    assert units[0].file == data / "downloads" / "hub--org--texts" / "data" / "a.jsonl"
    content = last.read_bytes()
    monkeypatch.setattr(Lettered, "units", lambda _: units)  # listed before the outage
    last.unlink()
    with pytest.raises(ShardError, match=r"could not fetch .*c\.jsonl .*submit again, which resumes"):
        shards(data).ensure(None)
    last.write_bytes(content)
    shards(data).ensure(None)
    asked = [path.rpartition("/")[2] for path, _ in served.requests]
    assert (asked.count("a.jsonl"), asked.count("b.jsonl")) == (1, 1)
    assert f"/resolve/{COMMIT}/data/a.jsonl" in served.requests[0][0]
    monkeypatch.undo()  # no hub, and no list of its files
    made = shards(data)
    assert made.ensure(None) == data / "hub--org--texts-vocab-257"
    assert made.note()["described"] == [
        "org/texts: tokens: train 80 (20 documents), val 40 (10 documents); the longest has 4"
    ]
