"""Files of a BPE tokenizer; the tokenizers package is not here, so slow tests train and open one."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.assets.training.workload_modules import Import, workload_on_the_path


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    with workload_on_the_path(monkeypatch, "gpt2-megatron") as load:
        yield load


def sum_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_the_checksum_of_two_files_depends_on_their_order(load: Import, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("1")
    two.write_text("2")
    bpe = load("trainkit.data.bpe").Bpe
    assert bpe((one,)).sha256 == sum_of("1")
    assert bpe((one, two)).sha256 == sum_of(sum_of("1") + sum_of("2"))
    assert bpe((two, one)).sha256 != bpe((one, two)).sha256


def test_gpt2s_files_come_from_the_given_site_and_have_to_be_gpt2s(
    load: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "encoder.json").write_text("{}")
    monkeypatch.setenv("GPT2_BPE_URL", site.as_uri())
    with pytest.raises(
        load("trainkit.data.fetch").FetchError, match=r"site/encoder.json is not the expected file"
    ):
        load("tokens").gpt2(tmp_path / "gpt2", None)


def test_a_vocabulary_that_is_made_of_the_same_text_is_not_trained_again(
    load: Import, tmp_path: Path
) -> None:
    (tmp_path / "made-of").write_text("this text")
    trained = load("tokens").train_bpe(tmp_path, iter(()), vocab_size=300, made_of="this text")
    assert trained == load("tokens").bpe_of(tmp_path)
