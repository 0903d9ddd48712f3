"""Shards of a text: found by its name, downloaded or made, and made again where they are another's."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from trainkit.data import shards
from trainkit.data.dataset_bucket import BucketError
from trainkit.data.documents import documents_of
from trainkit.data.text_shards import TextShards

SETTINGS: dict[str, Any] = {"vocab_size": 400, "validation_every": 5}


class Made(TextShards):
    """Shards whose making is counted: a shard of zeros."""

    def make(self) -> shards.Manifest:
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / "train-00000.bin"
        file.write_bytes(bytes(8))
        manifest = shards.Manifest(
            dtype="uint16",
            vocab_size=300,
            tokenizer_sha256="abc",
            source={"fingerprint": self.fingerprint, "validation_every": self.validation_every},
            splits={"train": (shards.Shard(file.name, 4, shards.sha256_of(file)),), "val": ()},
        )
        shards.write_manifest(self.folder, manifest)
        return manifest


@pytest.fixture
def own(tmp_path: Path) -> Made:
    """The shards of a user's text."""
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.txt").write_text("text")
    return Made(data=tmp_path, name="raw", **SETTINGS)


def test_a_text_is_found_by_its_name(tmp_path: Path) -> None:
    for name, file in {"raw": "titan/raw/a.txt", "corpus": "corpus/a.txt", "gpt2": "gpt2/raw/a.txt"}.items():
        text = TextShards(data=tmp_path / "titan", name=name, **SETTINGS)
        with pytest.raises(shards.ShardError, match=f"put .* into {tmp_path}"):
            text.ensure(None)
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text("text")
        assert text.files == [tmp_path / file]


def test_what_is_not_read_is_named(own: Made, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("b.zip", "notes.md", "more/c.csv"):
        (own.data / "raw" / name).parent.mkdir(exist_ok=True)
        (own.data / "raw" / name).write_text("x")
    own.units()
    assert capsys.readouterr().out.startswith(
        "data: not read: b.zip, more/c.csv, notes.md (what is read: *.txt, "
    )
    (own.data / "raw" / "a.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
    read = [text for unit in own.units() for text, _ in documents_of(unit)]  # type: ignore[arg-type]
    assert read == ["one", "two", "text"]


def test_torn_and_other_shards_are_made_again(own: Made, capsys: pytest.CaptureFixture[str]) -> None:
    def said(text: Made = own) -> str:
        text.ensure(None)
        return capsys.readouterr().out

    shard, text = own.folder / "train-00000.bin", own.data / "raw" / "a.txt"
    assert "vocabulary 300, tokens: train 4, val 0" in said()
    is_there, of_earlier = said().splitlines()
    assert is_there == f"data: {own.folder} is there: tokens: train 4, val 0"
    assert "of an earlier version" in of_earlier
    shard.write_bytes(b"torn")
    assert "train-00000.bin is corrupt: it has 4 bytes" in (torn := said())
    assert "made in" in torn
    shard.unlink()
    assert "train-00000.bin is missing; it is made again" in said()
    assert "made in" in said(dataclasses.replace(own, validation_every=6))
    text.write_text("another text")
    assert "made in" in said()
    text.unlink()
    assert "is there" in said(), "shards without their text are taken as they are"
    shard.write_bytes(b"\1" * 8)
    with pytest.raises(shards.ShardError, match=r"00000\.bin is corrupt: its sha256 is"):
        own.ensure(None)


def test_shards_of_earlier_files_remain(own: Made, capsys: pytest.CaptureFixture[str]) -> None:
    """Earlier versions read no subfolders and no compressed files, so these are not new text."""

    def said() -> str:
        own.ensure(None)
        return capsys.readouterr().out

    raw = own.data / "raw"
    assert "made in" in said()
    for name in ("more/b.txt", "c.txt.gz"):
        (raw / name).parent.mkdir(exist_ok=True)
        (raw / name).write_text("text")
    assert "remove it to have it made again of all" in said()
    (raw / "d.txt").write_text("text")
    assert "made in" in said()


def test_shards_of_today_are_made_again(own: Made) -> None:
    manifest = own.make()
    (shard,) = manifest.splits["train"]
    counted = dataclasses.replace(
        manifest, splits={"train": (dataclasses.replace(shard, longest=3),), "val": ()}
    )
    assert own.fits(counted)
    (own.data / "raw" / "more").mkdir()
    (own.data / "raw" / "more" / "b.txt").write_text("text")
    assert own.fits(manifest)
    assert not own.fits(counted)


def test_a_refused_upload_is_reported_and_training_continues(
    own: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    uploaded: list[str] = []

    class Bucket:
        """A bucket that takes one upload, and refuses the next."""

        places = ()

        def upload_shards(self, name: str, _folder: Path, _manifest: Any) -> None:
            if uploaded:
                raise BucketError("AccessDenied")
            uploaded.append(name)

    for _ in range(2):
        own.ensure(Bucket())  # type: ignore[arg-type]
    assert uploaded == ["raw-vocab-400"]
    assert (
        capsys.readouterr().err == "data: not uploaded to the bucket, and training continues: AccessDenied\n"
    )


def test_a_tokenizer_is_trained_once_for_a_text(own: Made, tmp_path: Path) -> None:
    file, times = tmp_path / "tokenizer.json", list[int]()

    def train() -> None:
        times.append(1)
        file.write_text("{}")

    for _ in range(2):
        own.train_once(file, train)
    assert len(times) == 1
    file.unlink()
    own.train_once(file, train)
    (own.data / "raw" / "a.txt").write_text("other")
    own.train_once(file, train)
    assert len(times) == 3
