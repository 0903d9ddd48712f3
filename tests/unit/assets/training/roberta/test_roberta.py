"""The text of roberta: zip, BPE files, splits; neither torch nor fairseq is here."""

import hashlib
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.assets.training.workload_modules import ROBERTA, Import, workload_on_the_path

TEXTS = {"train": " = Title = \n\n one line\n", "valid": " another\n", "test": " a third\n"}


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    monkeypatch.delenv("TRAINING_BUCKET", raising=False)
    with workload_on_the_path(monkeypatch, "roberta") as load:
        yield load


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    file = tmp_path / "raw" / "wikitext-103-raw-v1.zip"
    file.parent.mkdir()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as opened:
        for split, text in TEXTS.items():
            opened.writestr(f"wikitext-103-raw/wiki.{split}.raw", text)
    return file


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_wikitext_is_read_out_of_its_zip(load: Import, archive: Path) -> None:
    wikitext = load("wikitext")
    assert wikitext.sizes(archive) == {split: len(text) for split, text in TEXTS.items()}
    assert list(wikitext.lines(archive, "train")) == [" = Title = \n", "\n", " one line\n"]


def test_another_zip_under_that_name_is_refused_and_kept(load: Import, archive: Path) -> None:
    error = load("trainkit.data.fetch").FetchError
    with pytest.raises(error, match=f"its sha256 is {sha256(archive)}, not 91c00ae2") as told:
        load("wikitext").have_zip(archive.parent, None)
    assert str(archive) in str(told.value)
    assert archive.is_file()


def test_a_torn_zip_and_one_without_wikitext_are_refused(load: Import, archive: Path) -> None:
    wikitext, binary_data = load("wikitext"), load("binary_data")
    archive.write_bytes(archive.read_bytes()[:-40])
    with pytest.raises(binary_data.DataError, match="is not a complete zip"):
        wikitext.sizes(archive)
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("wiki.train.raw", "text")
    with pytest.raises(binary_data.DataError, match=r"has no wiki\.valid\.raw"):
        wikitext.sizes(archive)


def bpe_files(folder: Path, dictionary: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "encoder.json").write_text(json.dumps({"a": 0, "b": 1, "ab": 2}))
    (folder / "dict.txt").write_text(dictionary)
    return folder


def test_a_dictionary_has_each_id_of_its_encoder_once(load: Import, tmp_path: Path) -> None:
    line_bpe, binary_data = load("line_bpe"), load("binary_data")
    good = bpe_files(tmp_path / "good", "2 900\n0 20\n1 3\nmadeupword0000 0\n")
    assert line_bpe.FairseqBpe(good).check_dictionary() == 4
    for name, text in {
        "short": "0 1\n1 1\n",
        "twice": "0 1\n1 1\n2 1\n2 1\n",
        "long": "0 1\n1 1\n2 1\n3 1\n",
    }.items():
        with pytest.raises(binary_data.DataError, match=r"does not belong to encoder\.json"):
            line_bpe.FairseqBpe(bpe_files(tmp_path / name, text)).check_dictionary()


def test_every_block_is_either_for_training_or_for_validation(load: Import, tmp_path: Path) -> None:
    prepare = load("prepare")
    file = tmp_path / "text.txt"
    file.write_text("".join(f"paragraph {number} {'x' * 5000}\n\n" for number in range(60)))
    train, valid = (list(prepare.split_lines([file], split)) for split in ("train", "valid"))
    assert [line.split()[1] for line in valid if line.strip()] == ["19", "39", "59"]
    assert len([line for line in train if line.strip()]) == 57


def test_the_fingerprint_changes_with_the_text_and_the_vocabulary(load: Import, tmp_path: Path) -> None:
    prepare = load("prepare")

    def of(corpus: str, size: int = 300) -> Any:
        return prepare.fingerprint(corpus, data=tmp_path, vocab_size=size)

    assert of("raw") is None
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.txt").write_text("one")
    one = of("raw")
    assert one == of("raw") != of("raw", 400)
    (tmp_path / "raw" / "a.txt").write_text("two!")
    assert len({one, of("raw"), of("machine"), of("wikitext-103")}) == 4


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        (
            {"CORPUS": "raw"},
            r"CORPUS is raw, and .*/raw has no \*\.txt, \*\.jsonl or \*\.parquet: put",
        ),
        ({"CORPUS": "machine", "VOCAB_SIZE": "300", "PREPARE_WORKERS": "all"}, "PREPARE_WORKERS is 'all'"),
        ({"CORPUS": "books"}, 'CORPUS is "books"; allowed: wikitext-103, machine, raw'),
    ],
)
def test_a_preparation_that_cannot_be_is_one_sentence(
    load: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], said: str
) -> None:
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    prepare = load("prepare")
    with pytest.raises(SystemExit, match=said):
        load("trainkit.data.lifecycle").main(prepare.run, load("binary_data").DataError)


def test_what_is_published_is_marked_as_not_reproduced() -> None:
    figures = json.loads((ROBERTA / "figures.json").read_text())
    keys = {"what", "family", "nodes", "metric", "value", "unit", "source", "reproduced"}
    assert figures
    assert all(set(figure) == keys and figure["reproduced"] is False for figure in figures)


@pytest.mark.parametrize(
    ("norms", "found"),
    [
        (("1.50000000", "2.50000000"), [1.5, 2.5]),
        (("1.50000000", "nan"), []),
        (("inf", "2.50000000"), []),
        ((), []),
    ],
)
def test_gradients_that_differ_are_told_from_gradients_that_are_not_finite(
    load: Import, norms: tuple[str, ...], found: list[float]
) -> None:
    ranks = "\n".join(f"rank {rank:3d} = {norm}" for rank, norm in enumerate(norms))
    words = f"Fatal error: gradients are inconsistent.\ngrad_norm across the workers:\n{ranks}\n"
    assert load("gradient_norms").finite_norms(words) == found
