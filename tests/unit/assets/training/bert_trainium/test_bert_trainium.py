"""bert-trainium's settings, learning rate and compiled graphs; its vocabulary, sentence pairs and masks."""

import hashlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from trainkit.data.hub_text import wikipedia

from tests.unit.assets.training.trainkit.data.hub_server import Hub, hub_server
from tests.unit.assets.training.workload_modules import Import


@pytest.fixture(autouse=True)
def node(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node of Trainium."""
    job = ("EXPECTED_WORLD_SIZE", "NNODES", "NPROC_PER_NODE", "RANKS_PER_NODE", "PREPARE_ONLY")
    for name in ("DEVICE", "MIXED_PRECISION", "PRECOMPILE", *job):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ACCELERATOR_KIND", "neuron")
    monkeypatch.setenv("FAMILY", "trn1")


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"BERT_HEADS": "5"}, "BERT_WIDTH 1024 is not a multiple of BERT_HEADS 5"),
        ({"BERT_CONTEXT": "513"}, "BERT_CONTEXT is 513: give a number from 8 to 512"),
        ({"DEVICE": "tpu"}, 'DEVICE is "tpu"; allowed: neuron, cpu, xla-cpu'),
        ({"MIXED_PRECISION": "fp16"}, "MIXED_PRECISION is fp16"),
        ({"PRECOMPILE": "1", "DEVICE": "cpu"}, "PRECOMPILE=1 compiles for Trainium, and DEVICE is cpu"),
        ({"DEVICE": "xla-cpu", "EXPECTED_WORLD_SIZE": "2"}, "DEVICE=xla-cpu trains in one process"),
        (
            {"NNODES": "2", "NPROC_PER_NODE": "8", "RANKS_PER_NODE": "32"},
            "NPROC_PER_NODE is 8, and Neuron trains on several nodes only with all 32 cores of each",
        ),
        ({"ACCELERATOR_KIND": "gpu", "FAMILY": "p4d"}, "bert-trainium runs on Trainium, and p4d has none"),
        (
            {"ACCELERATOR_KIND": "gpu", "FAMILY": "p4d", "DEVICE": "neuron"},
            "DEVICE is neuron, and p4d has no Trainium",
        ),
    ],
)
def test_a_wrong_setting_is_one_sentence(
    load: Import, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], said: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as ended:
        load("settings").read_settings([])
    assert said in str(ended.value)
    assert "\n" not in str(ended.value)


@pytest.mark.parametrize(
    ("environment", "device"),
    [
        ({"NNODES": "1", "NPROC_PER_NODE": "8", "RANKS_PER_NODE": "32"}, "neuron"),
        ({"NNODES": "2", "NPROC_PER_NODE": "32", "RANKS_PER_NODE": "32"}, "neuron"),
        ({"ACCELERATOR_KIND": "none", "FAMILY": "m6i", "PREPARE_ONLY": "1"}, "cpu"),
    ],
)
def test_a_job_has_the_device_of_its_nodes(
    load: Import, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], device: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert load("settings").read_settings([]).device == device


def test_the_learning_rate_rises_and_falls(load: Import) -> None:
    module = load("settings")
    settings = module.Settings(max_steps=100, warmup_steps=20, learning_rate=4e-4)
    rates = [module.learning_rate(step, settings) for step in range(1, 101)]
    assert rates[0] == pytest.approx(4e-4 / 20)
    assert rates[19] == max(rates) == pytest.approx(4e-4)
    assert rates[20] < rates[19]
    assert 0 < rates[-1] < 1e-5
    falls = [before - after for before, after in itertools.pairwise(rates[19:])]
    assert falls == pytest.approx([falls[0]] * len(falls))
    settings = module.Settings(max_steps=10, warmup_steps=0, learning_rate=1.0)
    assert module.learning_rate(1, settings) == pytest.approx(10 / 11)


def test_compiled_and_missing_graphs_are_counted(load: Import, tmp_path: Path) -> None:
    module = load("compile_cache")
    for name, files in {
        "1": ("model.hlo_module.pb.gz", "model.neff"),
        "2": ("model.hlo_module.pb", "model.neff"),
        "3": ("model.hlo_module.pb",),
        "4": ("model.lock",),
    }.items():
        folder = tmp_path / "neuronxcc-2.26.6360.0+abc" / f"MODULE_{name}+d41d8cd9"
        folder.mkdir(parents=True)
        for file in files:
            (folder / file).touch()
    assert module.graphs(str(tmp_path)) == (2, 1)
    assert "compiled graphs: 2 in " in module.describe(str(tmp_path))
    described = module.describe(str(tmp_path / "none"))
    assert "compiled graphs: none in " in described
    assert "PRECOMPILE=1" in described
    assert module.graphs("s3://bucket/cache") is None, "it is not looked at"


WORDS = b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n"


@pytest.fixture
def vocabulary(load: Import) -> ModuleType:
    return load("vocabulary")


@pytest.fixture
def served(tmp_path: Path, vocabulary: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with a small vocabulary in the place of the published one."""
    model = tmp_path / "hub" / "models" / vocabulary.PUBLISHED
    model.mkdir(parents=True)
    (model / "vocab.txt").write_bytes(WORDS)
    monkeypatch.setattr(vocabulary, "PUBLISHED_SHA256", hashlib.sha256(WORDS).hexdigest())
    with hub_server(tmp_path / "hub") as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running


def found_for(
    vocabulary: ModuleType,
    data: Path,
    name: str = "wikipedia",
    *,
    edition: str = "20231101.en",
    size: int = 30522,
) -> Any:
    with pytest.MonkeyPatch.context() as given:
        given.setenv("WIKIPEDIA_EDITION", edition)
        text = wikipedia() if name == "wikipedia" else None
    return vocabulary.find_vocabulary(name, text, data=data, size=size, bucket=None)


def test_wikipedia_has_the_vocabulary_of_bert(vocabulary: ModuleType, served: Hub, tmp_path: Path) -> None:
    found = found_for(vocabulary, tmp_path)
    assert served.requests == [], "shards that exist need no vocabulary"
    for _ in range(2):
        assert found.ensure().read_bytes() == WORDS
    (asked,) = served.requests
    assert asked[0] == f"/{vocabulary.PUBLISHED}/resolve/{vocabulary.PUBLISHED_REVISION}/vocab.txt"


def test_an_own_vocabulary_wins_over_the_published_one(vocabulary: ModuleType, tmp_path: Path) -> None:
    """A vocabulary is trained if none is given that fits."""
    assert found_for(vocabulary, tmp_path, size=2048) is None
    assert found_for(vocabulary, tmp_path, edition="20231101.de") is None
    for name in ("raw", "machine"):
        assert found_for(vocabulary, tmp_path, name) is None
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "vocab.txt").write_bytes(WORDS)
    found = found_for(vocabulary, tmp_path)
    assert (found.ensure(), found.url) == (tmp_path / "raw" / "vocab.txt", None)
    assert found_for(vocabulary, tmp_path, "machine") is None


CONTEXT = 32
# Ids of the special tokens are 0 to 4; a document's tokens say which sentence they come from.
FIRST_ORDINARY = 10


def documents(count: int = 40, sentences: int = 12) -> list[list[list[int]]]:
    """Each sentence is of one number, which no other sentence has."""
    numbers = itertools.count(FIRST_ORDINARY)
    return [[[next(numbers)] * (3 + (i + j) % 7) for j in range(sentences)] for i in range(count)]


def rows(load: Import, made_of: list[list[list[int]]]) -> list[list[int]]:
    pairs = load("pairs")
    special = pairs.Special(0, 1, 2, 3, 4)
    length = CONTEXT + pairs.ROW_HEAD
    flat = [n for e in pairs.rows_of(made_of, context=CONTEXT, special=special) for n in e]
    assert len(flat) % length == 0
    return [flat[i : i + length] for i in range(0, len(flat), length)]


def segments(row: list[int]) -> tuple[list[int], list[int]]:
    first = row[2 : 2 + row[0]]
    second = [token for token in row[2 + row[0] :] if token]
    assert (first[0], first[-1], second[-1]) == (2, 3, 3)
    return first[1:-1], second[:-1]


def test_a_second_segment_follows_or_is_another_documents(load: Import) -> None:
    made_of = documents()
    of_document = {s[0]: i for i, document in enumerate(made_of) for s in document}
    found = rows(load, made_of)
    assert rows(load, documents()) == found
    assert max(sum(token != 0 for token in row[2:]) for row in found) == CONTEXT
    for row in found:
        first, second = segments(row)
        assert len({of_document[token] for token in first}) == 1
        if row[1]:
            assert of_document[second[0]] != of_document[first[0]]
        else:
            # What does not fit is cut off, which may be whole sentences of so few tokens.
            assert of_document[second[0]] == of_document[first[0]]
            assert 1 <= second[0] - first[-1] <= 3
    share = sum(row[1] for row in found) / len(found)
    assert 0.35 < share < 0.75
    odd: list[list[list[list[int]]]] = [[[]], [[[], []]], [[[7] * 500]], [[[7] * 500, [8] * 500]]]
    for row in (row for made_of in odd for row in rows(load, made_of)):
        assert all(segments(row))
    pairs = load("pairs")
    assert pairs.cut([[1, 2, 3, 4, 5], [], [6]], 2) == [[1, 2], [3, 4], [5], [6]]
    text = "One sentence. Another!\n\nA heading\nIs it 3.5?  Yes.\n"
    assert pairs.sentences(text) == ["One sentence.", "Another!", "A heading", "Is it 3.5?", "Yes."]


@pytest.fixture
def batch(load: Import) -> Any:
    found = np.array(rows(load, documents()), dtype=np.int64)
    masking = load("masking")
    special = load("pairs").Special(0, 1, 2, 3, 4)
    made = masking.mask(found, np.random.default_rng([1, 2]), special=special, vocab_size=1000)
    again = masking.mask(found, np.random.default_rng([1, 2]), special=special, vocab_size=1000)
    other = masking.mask(found, np.random.default_rng([1, 3]), special=special, vocab_size=1000)
    return found, made, again, other


def test_15_percent_of_ordinary_tokens_are_hidden(batch: Any) -> None:
    found, made, again, other = batch
    assert (made.input_ids == again.input_ids).all()
    assert (made.labels == again.labels).all()
    assert (made.labels != other.labels).any(), "the key decides"
    ids = found[:, 2:]
    predicted = made.labels != -100
    assert (made.labels[predicted] == ids[predicted]).all()
    assert (ids[predicted] >= FIRST_ORDINARY).all()
    assert (made.input_ids[~predicted] == ids[~predicted]).all()
    ordinary = (ids >= FIRST_ORDINARY).sum(axis=1)
    assert abs(predicted.sum(axis=1) - 0.15 * ordinary).max() <= 1
    assert predicted.sum(axis=1).max() <= CONTEXT * 20 / 128
    hidden = (made.input_ids[predicted] == 4).mean()
    kept = (made.input_ids[predicted] == ids[predicted]).mean()
    assert 0.7 < hidden < 0.9
    assert 0.02 < kept < 0.2
    found, made, _, _ = batch
    for row, types, there in zip(found, made.token_type_ids, made.attention_mask, strict=True):
        tokens = int((row[2:] != 0).sum())
        assert list(there) == [1] * tokens + [0] * (CONTEXT - tokens)
        assert list(types) == [0] * row[0] + [1] * (tokens - row[0]) + [0] * (CONTEXT - tokens)
    assert list(made.next_sentence_label) == list(found[:, 1])
