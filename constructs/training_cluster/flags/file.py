"""Reader of a file of flags for one cluster: `-c flags=prod.yaml`."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from training_cluster.flags.flag import facts_of
from training_cluster.flags.messages import allowed_values
from training_cluster.flags.settings import Settings
from training_cluster.paths import ROOT
from training_cluster.user_yaml import explained, line_of, read_file_of, unusable

_FLAG = "flags"
_IN_FILES = {flag: info for flag, info in Settings.model_fields.items() if flag != _FLAG}
_TAKES = {flag: allowed_values(info) for flag, info in _IN_FILES.items()}
_NULLS = ("null", "Null", "NULL", "~")
"""YAML's words for no value, which read as text would be the value of a flag."""
_PAGE = "  allowed: a YAML file with a line `flag: value` for each flag (docs/flags.md)"


def with_flags_file(context: Mapping[str, Any]) -> dict[str, Any]:
    """Add the flags of the file that the flag `flags` names; those of the context are used instead of them.

    Raises:
        ConfigurationError: the file cannot be used.
    """
    name = context.get(_FLAG)
    return {**read_flags(name), **context} if name and isinstance(name, str) else dict(context)


def replaced_flags(settings: Settings) -> Iterator[tuple[str, object, object]]:
    """Yield each flag of the file that is not used, its value there, and the value in its place."""
    of_file = read_flags(settings.flags) if settings.flags else {}
    listed = Settings(**of_file)
    for flag in of_file:
        value, used = getattr(listed, flag), getattr(settings, flag)
        if value != used:
            yield flag, value, used


def read_flags(name: str) -> dict[str, Any]:
    """Read a file of flags, each value as text, like a command line's.

    Args:
        name: path of the file, absolute or in the folder of cdk.json. Paths in it are relative to the file.

    Raises:
        ConfigurationError: no such file, no YAML, an unknown flag, or a value that a flag does not take.
    """
    file = ROOT / name
    content = read_file_of(_FLAG, name, otherwise="the file has no flags", page=_PAGE, as_text=True)
    flags: dict[str, Any] = {
        flag: "" if value in _NULLS else _in_folder(file.parent, value) if _is_path(flag, value) else value
        for flag, value in content.items()
    }
    wrong = [([_FLAG], "a file of flags names no other")] if _FLAG in flags else []
    try:
        Settings(**flags)
    except ValidationError as error:
        wrong += explained(error, takes=_TAKES, known=lambda _: _IN_FILES)
    if wrong:
        problems = [f"line {line_of(file, place)}: {place[0]}: {said}" for place, said in wrong]
        raise unusable(f"{_FLAG}={name}", problems, page=_PAGE)
    return flags


def _is_path(flag: str, value: object) -> bool:
    return isinstance(value, str) and value != "" and flag in _IN_FILES and facts_of(_IN_FILES[flag]).is_file


def _in_folder(folder: Path, value: str) -> str:
    """Return the path of a file as flags take it: in the folder of cdk.json where it is there."""
    path = Path(os.path.normpath(folder / value))
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)
