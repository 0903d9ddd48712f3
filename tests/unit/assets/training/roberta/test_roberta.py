"""The data of roberta: zip, BPE files, splits, dictionary, manifest; neither torch nor fairseq is here."""

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
from trainkit.data.fetch import FetchError
from trainkit.data.lifecycle import main
from trainkit.data.shards import ShardError, sha256_of

from tests.unit.assets.training.trainkit.data.folder_bucket import folder_bucket
from tests.unit.assets.training.workload_modules import Import

TEXTS = {"train": " = Title = \n\n one line\n", "valid": " another\n", "test": " a third\n"}


@pytest.fixture(autouse=True)
def no_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAINING_BUCKET", raising=False)


def test_wikitext_is_read_out_of_its_zip(load: Import, tmp_path: Path) -> None:
    wikitext, error = load("wikitext"), load("binary_data").DataError
    file = tmp_path / "raw" / "wikitext-103-raw-v1.zip"
    file.parent.mkdir()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as opened:
        for split, text in TEXTS.items():
            opened.writestr(f"wikitext-103-raw/wiki.{split}.raw", text)
    assert wikitext.sizes(file) == {split: len(text) for split, text in TEXTS.items()}
    assert list(wikitext.lines(file, "train")) == [" = Title = \n", "\n", " one line\n"]
    with pytest.raises(FetchError, match=f"{file}.* its sha256 is {sha256_of(file)}, not 91c00ae2"):
        wikitext.have_zip(file.parent, None)
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(error, match="is not a complete zip"):
        wikitext.sizes(file)
    with zipfile.ZipFile(file, "w") as opened:
        opened.writestr("wiki.train.raw", "text")
    with pytest.raises(error, match=r"has no wiki\.valid\.raw"):
        wikitext.sizes(file)


def test_a_dictionary_has_each_id_once(load: Import, tmp_path: Path) -> None:
    error, file = load("binary_data").DataError, tmp_path / "dict.txt"
    (tmp_path / "encoder.json").write_text(json.dumps({"a": 0, "b": 1, "ab": 2}))
    file.write_text("2 900\n0 20\n1 3\nmadeupword0000 0\n")
    assert load("line_bpe").FairseqBpe(tmp_path).check_dictionary() == 4
    for text in ("0 1\n1 1\n", "0 1\n1 1\n2 1\n2 1\n", "0 1\n1 1\n2 1\n3 1\n"):
        file.write_text(text)
        with pytest.raises(error, match=r"does not belong to encoder\.json"):
            load("line_bpe").FairseqBpe(tmp_path).check_dictionary()


def test_ids_have_the_places_of_their_symbols(load: Import, tmp_path: Path) -> None:
    """Behind fairseq's own symbols; a nightly test compares the files with fairseq's."""
    read, file = load("fairseq_format").read_numbering, tmp_path / "dict.txt"
    file.write_text("2 17\nmadeupword0000 0\n0 5 \n")
    # The id 1 has no symbol, and the last number is the end of a line.
    assert (read(file).indices.tolist(), read(file).dtype) == ([6, 3, 4, 2], "uint16")
    assert read(file).dictionary == "2 17\nmadeupword0000 0\n0 5\n"
    for count, dtype in ((65_495, "uint16"), (65_496, "uint32")):
        file.write_text("".join(f"{number} 1\n" for number in range(count)))
        assert read(file).dtype == dtype
    for line in ("1", "", "1 x", "0 1", "<unk> 1", "1 1 #fairseq:overwrite"):
        file.write_text(f"0 1\n{line}\n")
        with pytest.raises(load("binary_data").DataError, match=r"dict.txt, line 2: fairseq cannot read"):
            read(file)


def test_each_block_is_in_one_split(load: Import, tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("".join(f"paragraph {number} {'x' * 5000}\n\n" for number in range(60)))
    train, valid = (list(load("prepare").split_lines([file], split)) for split in ("train", "valid"))
    assert [line.split()[1] for line in valid if line.strip()] == ["19", "39", "59"]
    assert len([line for line in train if line.strip()]) == 57


def test_another_text_or_vocabulary_is_other_data(load: Import, tmp_path: Path) -> None:
    def of(corpus: str, size: int = 300) -> Any:
        return load("prepare").fingerprint(corpus, data=tmp_path, vocab_size=size)

    assert of("raw") is None
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.txt").write_text("one")
    one = of("raw")
    assert one == of("raw") != of("raw", 400)
    (tmp_path / "raw" / "a.txt").write_text("two!")
    assert len({one, of("raw"), of("machine"), of("wikitext-103")}) == 4


def test_an_impossible_preparation_is_one_sentence(
    load: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    for corpus, said in {
        "raw": r"CORPUS is raw, and .*/raw has no \*\.txt, \*\.jsonl or \*\.parquet: put",
        "books": 'CORPUS is "books"; allowed: wikitext-103, machine, raw',
    }.items():
        monkeypatch.setenv("CORPUS", corpus)
        with pytest.raises(SystemExit, match=said):
            main(load("prepare").run, load("binary_data").DataError)


def test_inconsistent_gradients_are_finite(load: Import) -> None:
    for norms, found in (
        (("1.50000000", "2.50000000"), [1.5, 2.5]),
        (("1.50000000", "nan"), []),
        (("inf", "2.50000000"), []),
        ((), []),
    ):
        ranks = "\n".join(f"rank {rank:3d} = {norm}" for rank, norm in enumerate(norms))
        words = f"Fatal error: gradients are inconsistent.\ngrad_norm across the workers:\n{ranks}\n"
        assert load("gradient_norms").finite_norms(words) == found


def data_folder(load: Import, folder: Path) -> Path:
    binary_data = load("binary_data")
    folder.mkdir(parents=True)
    for name in ("encoder.json", "vocab.bpe", "dict.txt", "train.bin", "train.idx"):
        (folder / name).write_bytes(os.urandom(20))
    manifest = binary_data.Manifest(
        fingerprint="abc",
        corpus="machine",
        vocab_size=300,
        symbols=305,
        tokens={"train": 10},
        files=binary_data.describe(folder),
    )
    binary_data.write_manifest(folder, manifest)
    return folder


def test_wrong_data_is_told_with_the_file(load: Import, tmp_path: Path) -> None:
    binary_data, folder = load("binary_data"), data_folder(load, tmp_path / "data")
    manifest = binary_data.open_data(folder)
    binary_data.check_data(folder, manifest)
    assert manifest.dictionary_sha256 == sha256_of(folder / "dict.txt")
    for damage, said in (
        (os.urandom(20), rf"train\.bin is corrupt: its sha256 is .*; remove {folder}, and submit"),
        (b"", r"train\.bin is corrupt: it has 0 bytes, manifest\.json says 20"),
    ):
        (folder / "train.bin").write_bytes(damage)
        with pytest.raises(ShardError, match=said):
            binary_data.check_data(folder, manifest)
    for text, said in (('{"format": 2, "files": []}', "of another format"), ("[]", "is not a manifest")):
        (folder / "manifest.json").write_text(text)
        with pytest.raises(binary_data.DataError, match=said):
            binary_data.open_data(folder)
    with pytest.raises(binary_data.DataError, match=r"there is no data in .*prepare\.sh makes it"):
        binary_data.open_data(tmp_path)


def test_the_next_cluster_takes_data_from_the_bucket(
    load: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    binary_data, name = load("binary_data"), "machine-bpe-300"
    bucket = folder_bucket(tmp_path / "bucket", monkeypatch, workload="roberta")
    made, taken = data_folder(load, tmp_path / "one" / name), tmp_path / "two" / name
    assert not binary_data.download(bucket, taken, fits=lambda _: True), "it is not there"
    for printed in (5, 0):
        binary_data.upload(bucket, made, binary_data.open_data(made))
        assert len(capsys.readouterr().out.splitlines()) == printed
    assert not binary_data.download(bucket, taken, fits=lambda manifest: manifest.fingerprint == "other")
    assert not taken.exists()
    # An interrupted start left a part of other data there.
    taken.mkdir(parents=True)
    (taken / "train.bin").write_bytes(os.urandom(20))
    assert binary_data.download(bucket, taken, fits=lambda manifest: manifest.fingerprint == "abc")
    binary_data.check_data(taken, binary_data.open_data(taken))
    assert binary_data.open_data(taken) == binary_data.open_data(made)
