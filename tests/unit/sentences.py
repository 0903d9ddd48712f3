"""Sentences that a person reads, in one file that a writer reads and edits: sentences.yaml, by the input."""

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import yaml

from training_cluster.paths import ROOT
from training_cluster.problems import ConfigurationError

FILE = Path(__file__).with_name("sentences.yaml")
_MANY_NAMES = re.compile(r"((?:[\w-]+, ){8})\w.*")


class _Dumper(yaml.SafeDumper):
    pass


def _represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent)


def _said(read: Callable[[str], object], given: str) -> str:
    try:
        said = read(given)
    except ConfigurationError as refused:
        return str(refused)
    assert isinstance(said, str), f"{given} is not refused"
    return said


def assert_sentences(
    group: str, inputs: Iterable[str], read: Callable[[str], object], folder: Path = ROOT
) -> None:
    """Assert that each input is refused with its sentence, or gives it.

    Paths in the project or in `folder` are without these; a list of more than eight names ends early.
    """
    found = {}
    for each in inputs:
        said = _said(read, each).replace(f"{folder}/", "").replace(f"{ROOT}/", "")
        found[each] = "\n".join(_MANY_NAMES.sub(r"\1...", line).rstrip() for line in said.splitlines())
    kept = yaml.safe_load(FILE.read_text())
    if os.environ.get("UPDATE_GOLDEN"):
        kept[group] = found
        FILE.write_text(yaml.dump(kept, Dumper=_Dumper, allow_unicode=True, width=1000))
    assert kept[group] == found, "read the difference, then: UPDATE_GOLDEN=1 pytest tests/unit"
