"""The lifecycle of preparations: settings, space, and shards that are found, downloaded or made."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.unit.assets.training.workload_modules import Import, workload_on_the_path


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    with workload_on_the_path(monkeypatch, "gpt2") as load:
        yield load


@pytest.fixture
def lifecycle(load: Import) -> ModuleType:
    return load("trainkit.data.lifecycle")


@pytest.fixture
def shards(load: Import) -> ModuleType:
    return load("trainkit.data.shards")


@dataclass
class Config:
    """Shards of one text."""

    folder: Path
    fingerprint: str | None = "of the text"

    def fits(self, manifest: Any) -> bool:
        """Return True if shards are made of this text."""
        return self.fingerprint in {None, manifest.source["fingerprint"]}


def made(shards: ModuleType, config: Config, *, ids: bytes = bytes(8)) -> Any:
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


@pytest.mark.parametrize("value", ["0", "-1", "1025", "two", "1.5"])
def test_a_number_that_is_none_or_not_allowed_is_refused_with_those_that_are(
    lifecycle: ModuleType, shards: ModuleType, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("PREPARE_WORKERS", value)
    with pytest.raises(
        shards.ShardError, match=f"PREPARE_WORKERS is '{value}': give a whole number from 1 to 1024"
    ):
        lifecycle.worker_count()


def test_a_number_that_is_not_given_is_the_default(
    lifecycle: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VALIDATION_EVERY", "")
    assert lifecycle.whole_number("VALIDATION_EVERY", 20, range(2, 100)) == 20
    monkeypatch.setenv("VALIDATION_EVERY", "7")
    assert lifecycle.whole_number("VALIDATION_EVERY", 20, range(2, 100)) == 7


def test_an_expected_error_ends_a_preparation_in_one_sentence(lifecycle: ModuleType) -> None:
    def run() -> None:
        raise OSError("the disk is gone")

    with pytest.raises(SystemExit, match=r"^prepare\.py: the disk is gone$"):
        lifecycle.main(run, OSError)
    with pytest.raises(OSError, match="the disk is gone"):
        lifecycle.main(run)


def test_shards_are_made_once_and_again_where_they_are_torn_or_of_another_text(
    lifecycle: ModuleType, shards: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[str] = []

    def ensure(config: Config) -> None:
        def make() -> Any:
            calls.append("made")
            return made(shards, config)

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


def test_a_bucket_that_refuses_an_upload_is_reported_and_the_preparation_goes_on(
    lifecycle: ModuleType,
    shards: ModuleType,
    load: Import,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    uploaded: list[str] = []

    class Bucket:
        """A bucket that takes one upload, and refuses the next."""

        def upload_shards(self, name: str, _folder: Path, _manifest: Any) -> None:
            if uploaded:
                raise load("trainkit.data.dataset_bucket").BucketError("AccessDenied")
            uploaded.append(name)

    config = Config(tmp_path / "shards")
    made(shards, config)
    for _ in range(2):
        lifecycle.have_shards(config, Bucket(), pytest.fail)
    assert uploaded == ["shards"]
    assert (
        capsys.readouterr().err == "data: not uploaded to the bucket, and training continues: AccessDenied\n"
    )


def test_shards_fit_their_text_and_split_alone(
    lifecycle: ModuleType, shards: ModuleType, tmp_path: Path
) -> None:
    manifest = made(shards, Config(tmp_path))
    assert lifecycle.is_of_text(manifest, "of the text", validation_every=20)
    assert lifecycle.is_of_text(manifest, None, validation_every=20)
    assert not lifecycle.is_of_text(manifest, "of another", validation_every=20)
    assert not lifecycle.is_of_text(manifest, None, validation_every=21)


def test_a_file_is_made_again_when_its_note_names_another_text_or_it_is_missing(
    lifecycle: ModuleType, tmp_path: Path
) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text("{}")
    assert not lifecycle.is_made_of(file, "one text"), "there is no note"
    lifecycle.note_made_of(file, "one text")
    assert lifecycle.is_made_of(file, "one text")
    assert not lifecycle.is_made_of(file, "another")
    file.unlink()
    assert not lifecycle.is_made_of(file, "one text"), "the note alone is left"


def test_a_file_system_that_is_too_small_is_refused_at_once(
    lifecycle: ModuleType, shards: ModuleType, tmp_path: Path
) -> None:
    lifecycle.check_space(tmp_path, 1.0)
    with pytest.raises(shards.ShardError, match=r"the data needs about 1000000000\.0 GB and .* GB free"):
        lifecycle.check_space(tmp_path, 1e18)
