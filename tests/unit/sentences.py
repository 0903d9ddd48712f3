"""Sentences of refusals, in one file that a writer reads and edits: sentences.yaml, by the refused input."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import yaml

from training_cluster.problems import ConfigurationError

FILE = Path(__file__).with_name("sentences.yaml")


class _Dumper(yaml.SafeDumper):
    pass


def _represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent)


def assert_sentences(group: str, inputs: Iterable[str], read: Callable[[str], object], folder: Path) -> None:
    """Assert that reading each input ends with its sentence; names in `folder` are without it."""
    found = {}
    for each in inputs:
        with pytest.raises(ConfigurationError) as refused:
            read(each)
        lines = str(refused.value).replace(f"{folder}/", "").splitlines()
        found[each] = "\n".join(line.rstrip() for line in lines)
    kept = yaml.safe_load(FILE.read_text())
    if os.environ.get("UPDATE_GOLDEN"):
        kept[group] = found
        FILE.write_text(yaml.dump(kept, Dumper=_Dumper, allow_unicode=True, width=1000))
    assert kept[group] == found, "read the difference, then: UPDATE_GOLDEN=1 pytest tests/unit"
