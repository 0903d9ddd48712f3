"""The lifecycle of preparations: settings, space, and shards that are found, downloaded or made."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from trainkit.data import lifecycle, shards
from trainkit.data.dataset_bucket import BucketError


@dataclass
class Config:
    """Shards of one text."""

    folder: Path
    fingerprint: str | None = "of the text"

    def fits(self, manifest: Any) -> bool:
        """Return True if shards are made of this text."""
        return self.fingerprint in {None, manifest.source["fingerprint"]}


def made(config: Config, *, ids: bytes = bytes(8)) -> Any:
    """Make one shard."""
    config.folder.mkdir(parents=True, exist_ok=True)
    file = config.folder / "train-00000.bin"
    file.write_bytes(ids)
    shard = shards.Shard(file.name, len(ids) // 2, shards.sha256_of(file))
    manifest = shards.Manifest(
        dtype="uint16",
        vocab_size=300,
        tokenizer_sha256="abc",
        source={"fingerprint": config.fingerprint, "validation_every": 20},
        splits={"train": (shard,), "val": ()},
    )
    shards.write_manifest(config.folder, manifest)
    return manifest


def test_a_number_is_checked_or_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("0", "-1", "1025", "two", "1.5"):
        monkeypatch.setenv("PREPARE_WORKERS", value)
        with pytest.raises(shards.ShardError, match=f"'{value}': give a whole number from 1 to 1024"):
            lifecycle.worker_count()
    for value, number in (("", 20), ("7", 7)):
        monkeypatch.setenv("VALIDATION_EVERY", value)
        assert lifecycle.whole_number("VALIDATION_EVERY", 20, range(2, 100)) == number


def test_an_expected_error_ends_in_one_sentence() -> None:
    def run() -> None:
        raise OSError("the disk is gone")

    with pytest.raises(SystemExit, match=r"^prepare\.py: the disk is gone$"):
        lifecycle.main(run, OSError)
    with pytest.raises(OSError, match="the disk is gone"):
        lifecycle.main(run)


def test_torn_and_other_shards_are_made_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calls: list[str] = []

    def ensure(config: Config) -> None:
        def make() -> Any:
            calls.append("made")
            return made(config)

        lifecycle.have_shards(config, None, make)

    config = Config(tmp_path / "shards")
    ensure(config)
    assert "vocabulary 300, tokens: train 4, val 0" in capsys.readouterr().out
    ensure(config)
    assert capsys.readouterr().out == f"data: {config.folder} is there\n"
    assert calls == ["made"]
    (config.folder / "train-00000.bin").write_bytes(b"torn")
    ensure(config)
    ensure(Config(config.folder, "of another text"))
    assert calls == ["made"] * 3
    ensure(Config(config.folder, None))
    assert len(calls) == 3, "shards without their text are taken as they are"
    (config.folder / "train-00000.bin").write_bytes(b"\1" * 8)
    with pytest.raises(shards.ShardError, match=r"00000\.bin is corrupt: its sha256 is"):
        ensure(Config(config.folder, None))


def test_a_refused_upload_is_reported_and_training_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uploaded: list[str] = []

    class Bucket:
        """A bucket that takes one upload, and refuses the next."""

        def upload_shards(self, name: str, _folder: Path, _manifest: Any) -> None:
            if uploaded:
                raise BucketError("AccessDenied")
            uploaded.append(name)

    config, bucket = Config(tmp_path / "shards"), Bucket()
    made(config)
    for _ in range(2):
        lifecycle.have_shards(config, bucket, pytest.fail)  # type: ignore[arg-type]
    assert uploaded == ["shards"]
    assert (
        capsys.readouterr().err == "data: not uploaded to the bucket, and training continues: AccessDenied\n"
    )


def test_shards_fit_their_text_and_split_alone(tmp_path: Path) -> None:
    manifest = made(Config(tmp_path))
    for fingerprint, every, fits in (
        ("of the text", 20, True),
        (None, 20, True),
        ("of another", 20, False),
        (None, 21, False),
    ):
        assert lifecycle.is_of_text(manifest, fingerprint, validation_every=every) == fits


def test_a_file_has_the_text_of_its_note(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text("{}")
    assert not lifecycle.is_made_of(file, "one text"), "there is no note"
    lifecycle.note_made_of(file, "one text")
    assert lifecycle.is_made_of(file, "one text")
    assert not lifecycle.is_made_of(file, "another")
    file.unlink()
    assert not lifecycle.is_made_of(file, "one text"), "the note alone is left"


def test_too_little_space_is_refused(tmp_path: Path) -> None:
    lifecycle.check_space(tmp_path, 1.0)
    with pytest.raises(shards.ShardError, match=r"the data needs about 1000000000\.0 GB and .* GB free"):
        lifecycle.check_space(tmp_path, 1e18)
