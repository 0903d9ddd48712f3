"""One unit of a corpus: its record says from which text, tokenizer and split its shards were made."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.assets.training.workload_modules import workload_on_the_path

CHANGES: list[dict[str, Any]] = [
    {"text": "rewritten"},
    {"tokenizer_sha256": "another"},
    {"validation_every": 5},
    {"vocab_size": 2**16 + 1},
    {"layout": "2"},
]


@pytest.fixture
def fingerprint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., str]:
    with workload_on_the_path(monkeypatch, "gpt2") as load:
        module = load("trainkit.data.tokenize_unit")

    def of(*, text: str = "written", **changed: Any) -> str:
        units = (module.Unit(name="a.txt", size_bytes=7, fingerprint=text),)
        settings = {"vocab_size": 257, "tokenizer_sha256": "letters", "source": {}, "validation_every": 3}
        recipe = module.Recipe(folder=tmp_path, units=units, read=None, encoder=None, **settings | changed)
        found: str = recipe.fingerprint(0)
        return found

    return of


@pytest.mark.parametrize("changed", CHANGES, ids=lambda each: next(iter(each)))
def test_whatever_changes_the_shards_changes_the_fingerprint(
    changed: dict[str, Any], fingerprint: Callable[..., str]
) -> None:
    assert fingerprint(**changed) != fingerprint()


def test_the_name_of_the_source_changes_no_shard(fingerprint: Callable[..., str]) -> None:
    assert fingerprint(source={"corpus": "other"}) == fingerprint()
