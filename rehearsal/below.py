"""Paths below a dataclass's folder, as its attributes."""

from pathlib import Path
from typing import Any


class Below:
    """The path with a name below the folder that another attribute of the object has."""

    def __init__(self, name: str, *, of: str = "root") -> None:
        self._name, self._of = name, of

    def __get__(self, owner: Any, _type: type) -> Path:
        """Return the path."""
        folder: Path = getattr(owner, self._of)
        return folder / self._name
