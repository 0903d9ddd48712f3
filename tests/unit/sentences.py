"""Sentences of refusals, in one file that a writer reads and edits: sentences.yaml, by the refused input."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import yaml

from training_cluster.paths import ROOT
from training_cluster.problems import ConfigurationError

FILE = Path(__file__).with_name("sentences.yaml")
_LONGEST = 380


class _Dumper(yaml.SafeDumper):
    pass


def _represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent)


def assert_sentences(group: str, inputs: Iterable[str], read: Callable[[str], object], folder: Path) -> None:
    """Assert that reading each input ends with its sentence.

    Paths in the project or in `folder` are without these; a line that lists many names ends early.
    """
    found = {}
    for each in inputs:
        with pytest.raises(ConfigurationError) as refused:
            read(each)
        said = str(refused.value).replace(f"{folder}/", "").replace(f"{ROOT}/", "")
        found[each] = "\n".join(line[:_LONGEST].rstrip() for line in said.splitlines())
    kept = yaml.safe_load(FILE.read_text())
    if os.environ.get("UPDATE_GOLDEN"):
        kept[group] = found
        FILE.write_text(yaml.dump(kept, Dumper=_Dumper, allow_unicode=True, width=1000))
    assert kept[group] == found, "read the difference, then: UPDATE_GOLDEN=1 pytest tests/unit"
