"""gpt2-megatron's choice and preparation of a text; no tokenizer package is here."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.unit.assets.training.trainkit.data.hub_server import hub_server
from tests.unit.assets.training.workload_modules import Import


def test_wikipedia_is_read_from_the_hub(
    load: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare, hub_text = load("prepare"), load("trainkit.data.hub_text")
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    for name in ("CORPUS", "WIKIPEDIA_EDITION", "VOCAB_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert prepare.read_config().folder == tmp_path / "wikipedia-20231101.en-vocab-50257"
    monkeypatch.setenv("WIKIPEDIA_EDITION", "20231101.simple")
    articles = tmp_path / "hub" / "datasets" / hub_text.REPOSITORY / "20231101.simple"
    articles.mkdir(parents=True)
    (articles / "train-00000-of-00001.parquet").write_bytes(b"0123456789")
    with hub_server(tmp_path / "hub") as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        config = prepare.read_config()
        (unit,) = prepare.units_of(config)
    assert unit.file == tmp_path / "downloads" / "wikipedia-20231101.simple" / "train-00000-of-00001.parquet"
    assert config.fingerprint == f"{hub_text.REPOSITORY}@{hub_text.REVISION}"
    assert prepare.downloaded(config) == "; 0.0 MB downloaded"


def test_gpus_do_not_wait_for_wikipedia(
    load: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = load("prepare")
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    for name in ("CORPUS", "WIKIPEDIA_EDITION", "VOCAB_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for kind, here, is_refused in (("gpu", "", True), ("gpu", "yes", False), ("none", "", False)):
        monkeypatch.setenv("ACCELERATOR_KIND", kind)
        monkeypatch.setenv("PREPARE_HERE", here)
        refused = pytest.raises(prepare.ShardError, match="prepare it on CPUs first")
        with refused if is_refused else nullcontext():
            prepare.refuse_on_gpus(prepare.read_config())
