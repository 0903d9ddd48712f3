"""Encoding word by word, with the tokenizers library of gpt2's environment."""

from pathlib import Path

import pytest

from tests.slow.assets.training.training import in_environment

pytestmark = pytest.mark.slow


def test_a_text_has_the_ids_of_the_library(tmp_path: Path) -> None:
    assert in_environment("gpt2", "words_alike.py", str(tmp_path)).splitlines()[-1] == "equal"
