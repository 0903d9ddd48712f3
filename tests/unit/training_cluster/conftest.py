"""A file that a flag names, in a folder of its own."""

from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes a file, and returns its path."""

    def write_file(text: str) -> str:
        file = tmp_path / "mine.yaml"
        file.write_text(text)
        return str(file)

    return write_file
