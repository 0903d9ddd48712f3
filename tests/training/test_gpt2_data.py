"""What gpt2 reads and writes, as far as it needs no package: corpus.py, metrics.py, prepare.py."""

import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest

GPT2 = Path(__file__).parents[2] / "assets" / "training" / "gpt2"


@pytest.fixture(autouse=True)
def _gpt2_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(GPT2))
    monkeypatch.setattr("sys.dont_write_bytecode", True)


@pytest.fixture
def corpus() -> ModuleType:
    return importlib.import_module("corpus")


@pytest.fixture
def prepare() -> ModuleType:
    return importlib.import_module("prepare")


@pytest.fixture
def metrics() -> ModuleType:
    return importlib.import_module("metrics")


@pytest.fixture
def stdlib(tmp_path: Path) -> Path:
    folder = tmp_path / "stdlib"
    for name, source in {
        "b.py": '"""Module b."""\nraise RuntimeError("imported")\n',
        "a.py": '"""Module a."""\nclass A:\n    """Class A."""\n    def f(self):\n        """Method f."""\n',
        "silent.py": "x = 1\n",
        "broken.py": "def (:\n",
        "test/test_a.py": '"""A test."""\n',
        "site-packages/other.py": '"""Someone else\'s."""\n',
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(source, encoding="utf-8")
    return folder


def test_documentation_is_read_from_source_and_nothing_is_imported(corpus: ModuleType, stdlib: Path) -> None:
    assert list(corpus.documentation(stdlib)) == ["Module a.\n\nClass A.\n\nMethod f.", "Module b."]


def test_without_text_of_the_user_licences_and_documentation_are_taken(
    corpus: ModuleType, stdlib: Path, tmp_path: Path
) -> None:
    licences = tmp_path / "licences"
    licences.mkdir()
    (licences / "MIT-2").write_text("Permission is granted.\n", encoding="utf-8")
    (licences / "MIT").symlink_to("MIT-2")
    first, second = corpus.collect(tmp_path / "raw", licences=licences, stdlib=stdlib)
    assert (first.name, first.size_bytes) == (f"1 licences in {licences}", 23)
    assert list(first.lines()) == ["Permission is granted.\n"]
    assert second.name.endswith("standard library (2 modules)")


def test_a_machine_without_licences_still_has_documentation(
    corpus: ModuleType, stdlib: Path, tmp_path: Path
) -> None:
    (only,) = corpus.collect(tmp_path / "raw", licences=tmp_path / "none", stdlib=stdlib)
    assert "documentation strings" in only.name


def test_this_machines_own_text_is_large_enough_to_train_on(corpus: ModuleType, tmp_path: Path) -> None:
    sources = corpus.collect(tmp_path / "raw")
    assert sum(source.size_bytes for source in sources) > 1_000_000


def test_text_of_the_user_comes_instead_of_everything_else(corpus: ModuleType, tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "ignored.md"):
        (tmp_path / name).write_text(f"text of {name}\n", encoding="utf-8")
    sources = corpus.collect(tmp_path)
    assert [source.name for source in sources] == ["a.txt", "b.txt"]
    assert list(sources[0].lines()) == ["text of a.txt\n"]


def test_the_fingerprint_changes_with_the_text_and_only_then(corpus: ModuleType, tmp_path: Path) -> None:
    empty = corpus.fingerprint(tmp_path)
    (tmp_path / "a.txt").write_text("one", encoding="utf-8")
    one = corpus.fingerprint(tmp_path)
    assert one == corpus.fingerprint(tmp_path) != empty
    (tmp_path / "a.txt").write_text("two!", encoding="utf-8")
    assert corpus.fingerprint(tmp_path) != one


def test_blocks_together_are_the_text_and_end_at_empty_lines(corpus: ModuleType) -> None:
    lines = [line for i in range(40) for line in (f"a line with the number {i}\n", "\n")]
    blocks = list(corpus.blocks(lines, characters=100))
    assert "".join(blocks) == "".join(lines)
    assert len(blocks) > 5
    assert all(block.endswith("\n\n") for block in blocks)


def test_text_without_empty_lines_is_cut_all_the_same(corpus: ModuleType) -> None:
    blocks = list(corpus.blocks(["x" * 99 + "\n"] * 100, characters=1000))
    assert [len(block) for block in blocks] == [2000] * 5


@pytest.mark.parametrize("text", ["299", "65537", "many", "", "-1"])
def test_a_vocabulary_that_the_files_cannot_hold_is_refused(prepare: ModuleType, text: str) -> None:
    with pytest.raises(SystemExit, match="Give a whole number from 300 to 65536"):
        prepare.read_vocab_size(text)


def test_data_is_done_only_when_it_was_made_from_the_same_text(prepare: ModuleType, tmp_path: Path) -> None:
    assert not prepare.is_done(tmp_path, "abc")
    (tmp_path / "meta.json").write_text(json.dumps({"fingerprint": "abc"}), encoding="utf-8")
    assert prepare.is_done(tmp_path, "abc")
    assert not prepare.is_done(tmp_path, "abd")


def test_metrics_after_a_resume_hold_every_step_once(metrics: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    speed = {"tokens_per_s": 1.0, "step_s": 1.0, "learning_rate": 0.1}
    before = metrics.Metrics(file, after_step=0)
    for step in (1, 2, 3):
        before.add(step=step, loss=3.0 - step / 10, **speed)
    with file.open("a", encoding="utf-8") as torn:
        torn.write('{"step": 4, "lo')
    after = metrics.Metrics(file, after_step=2)
    assert "step 3: loss 2.5000" in after.add(step=3, loss=2.5, **speed)
    assert [(line["step"], line["loss"]) for line in metrics.read(file)] == [(1, 2.9), (2, 2.8), (3, 2.5)]
    assert after.summary() == "step 3, first loss 2.9000, last loss 2.5000"


def test_a_run_that_begins_anew_drops_the_old_metrics(metrics: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    file.write_text('{"step": 1, "loss": 9.0}\n', encoding="utf-8")
    assert metrics.Metrics(file, after_step=0).summary() == "no step was left to do"
    assert file.read_text(encoding="utf-8") == ""
