"""One contract for DATA_DIR/raw: every workload reads the same folder, whatever its own tokenizer."""

import json
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.unit.assets.training.workload_modules import Import, workload_on_the_path
from training_cluster.paths import TRAINING

TEXTS = {
    "a.jsonl": ["one document\n", "another document\n"],
    "b.parquet": ["of a table\n", "of a table, too\n"],
    "c.txt": ["plain text\n"],
}
WORKLOADS = ["gpt2", "gpt2-megatron", "bert-trainium", "roberta"]


class ParquetFile(AbstractContextManager["ParquetFile"]):
    """A stand-in for pyarrow's, which the workloads' environments have; a table is a list in JSON here."""

    def __init__(self, file: Path) -> None:
        self._rows = json.loads(file.read_text(encoding="utf-8"))
        self.schema_arrow = SimpleNamespace(names=["text"])
        self.metadata = SimpleNamespace(num_rows=len(self._rows))

    def __exit__(self, *_: object) -> None:
        """Close nothing."""

    def iter_batches(self, *, batch_size: int, columns: list[str]) -> Iterator[Any]:
        """Read all rows at once."""
        assert batch_size
        assert columns == ["text"]
        yield SimpleNamespace(column=lambda _: SimpleNamespace(to_pylist=lambda: self._rows))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """DATA_DIR with text of each kind, in one raw/."""
    raw = tmp_path / "data" / "raw"
    raw.mkdir(parents=True)
    for name, texts in TEXTS.items():
        content = {
            ".jsonl": "".join(json.dumps({"text": text}) + "\n" for text in texts),
            ".parquet": json.dumps(texts),
            ".txt": "".join(texts),
        }
        (raw / name).write_text(content[Path(name).suffix], encoding="utf-8")
    arrow, parquet = ModuleType("pyarrow"), ModuleType("pyarrow.parquet")
    arrow.ArrowException = type("ArrowException", (Exception,), {})  # type: ignore[attr-defined]
    arrow.parquet = parquet  # type: ignore[attr-defined]
    parquet.ParquetFile = ParquetFile  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pyarrow", arrow)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", parquet)
    return raw.parent


def units_of(load: Import, workload: str, data: Path) -> Any:
    if workload in {"gpt2", "bert-trainium"}:
        return load("corpus").units("raw", data=data)
    return load("prepare").units_of(SimpleNamespace(data=data, corpus="raw", name="raw"))


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_workload_reads_raw(monkeypatch: pytest.MonkeyPatch, data: Path, workload: str) -> None:
    every_document = [text for texts in TEXTS.values() for text in texts]
    with workload_on_the_path(monkeypatch, workload) as load:
        if workload == "roberta":
            assert load("prepare").choose_corpus("", data=data) == "raw"
            text = load("prepare").open_text("raw", data=data, work=data / "work", bucket=None)
            assert [line for line in text.lines("train") if line.strip()] == every_document
        else:
            read = load("trainkit.data.documents").documents_of
            units = units_of(load, workload, data)
            assert [document for unit in units for document, _ in read(unit)] == every_document


def test_every_environment_reads_parquet() -> None:
    """In one version, since they share the text."""
    requirements = [(TRAINING / name / "requirements.txt").read_text() for name in WORKLOADS]
    pins = [[line for line in text.splitlines() if line.startswith("pyarrow==")] for text in requirements]
    assert pins == [pins[0]] * len(WORKLOADS)
    assert pins[0]
