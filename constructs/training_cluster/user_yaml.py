"""Reader of the YAML files that a user writes: it reports what YAML's own reader takes in silence."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BeforeValidator, ValidationError

from training_cluster.paths import ROOT
from training_cluster.problems import ConfigurationError, did_you_mean

Read = TypeVar("Read")
Listed = Annotated[
    tuple[str, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
]
"""One text, or a list of texts."""


class UserYamlError(Exception):
    """Problems of a file: a sentence each, with the line where there is one."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def read_user_yaml(file: Path, *, as_text: bool = False) -> Any:
    """Read a file.

    Args:
        as_text: True to read each value as the text that the user wrote, such as `off` and `0100`.

    Raises:
        UserYamlError: no such file, no YAML, an empty file, a key or a Name twice.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        if "\0" in str(file):
            file, reason = Path(repr(str(file))), "not the name of a file"
        raise UserYamlError([f"{file}: {reason}"]) from None
    return parse_user_yaml(text, yaml.BaseLoader if as_text else _Loader)


def parse_user_yaml(text: str, loader: Any, *, of_names: bool = True) -> Any:
    """Parse a text with a safe loader. Raises UserYamlError like `read_user_yaml`; a Name twice, of_names."""
    try:
        node = yaml.compose(text, Loader=loader)
        if node is None:
            raise UserYamlError(["the file is empty"])
        if twice := list(_duplicates(node, of_names=of_names)):
            raise UserYamlError(twice)
        return yaml.load(text, Loader=loader)  # noqa: S506 (safe loaders)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise UserYamlError([f"{line}{error.problem or error.context}"]) from None
    except RecursionError:
        raise UserYamlError(["its lists and mappings are nested too deeply"]) from None
    except yaml.YAMLError as error:
        raise UserYamlError([" ".join(str(error).split())]) from None


def read_file_of(flag: str, name: str, *, otherwise: str, page: str, as_text: bool = False) -> dict[Any, Any]:
    """Read the keys in the file of a flag.

    Args:
        flag: name of the flag.
        name: path of the file, absolute or in the folder of cdk.json.
        otherwise: problem of a file that has no keys.
        page: last line of the error.
        as_text: True to read each value as the text that the user wrote.

    Raises:
        ConfigurationError: no such file, no YAML, a key twice, or no keys.
    """
    try:
        content = read_user_yaml(ROOT / name, as_text=as_text)
    except UserYamlError as error:
        raise unusable(f"{flag}={name}", error.problems, page=page) from None
    if not isinstance(content, dict):
        raise unusable(f"{flag}={name}", [otherwise], page=page)
    return content


def cached_until_changed(read: Callable[[str], Read]) -> Callable[[str], Read]:
    """Read each file of a user's once, and again when it has changed."""
    cached = cache(lambda name, _changed_ns: read(name))

    def read_once(name: str) -> Read:
        try:
            changed_ns = (ROOT / name).stat().st_mtime_ns
        except (OSError, ValueError):
            changed_ns = 0  # the reader says why
        return cached(name, changed_ns)

    return read_once


def line_of(file: Path, place: Sequence[str]) -> int:
    """Return the line of a value, by the keys that lead to it; of the last one that the file has."""
    node = yaml.compose(file.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    line = 1
    for each in place:
        found = None
        if isinstance(node, yaml.MappingNode):
            found = next((pair for pair in node.value if pair[0].value == each), None)
        elif isinstance(node, yaml.SequenceNode) and each.isdigit() and int(each) < len(node.value):
            found = (node.value[int(each)],) * 2
        if found is None:
            break
        line, node = found[0].start_mark.line + 1, found[1]
    return line


def explained(
    error: ValidationError, *, takes: Mapping[str, str], known: Callable[[Sequence[str]], Collection[str]]
) -> Iterator[tuple[list[str], str]]:
    """Yield place and words of each problem of a model.

    Args:
        error: of the model.
        takes: allowed values in words, by key.
        known: returns the keys that a place may have.
    """
    for problem in error.errors():
        place = [str(each) for each in problem["loc"]]
        key = next((each for each in reversed(place) if not each.isdigit()), "")
        allowed = f"\n    allowed: {takes[key]}" if key in takes else ""
        match problem["type"]:
            case "extra_forbidden":
                keys = known(place)
                yield place, f"no such key.{did_you_mean(key, keys)}\n    allowed: {', '.join(keys)}"
            case "missing":
                yield place, f"is missing{allowed}"
            case "value_error":
                yield place, problem["msg"].removeprefix("Value error, ") + allowed
            case "dict_type" | "model_type" | "model_attributes_type" if problem["input"] is None:
                yield place, "has nothing below it"
            case _:
                yield place, f"{str(problem['input'])[:60]}: not allowed{allowed}"


def unusable(given: str, problems: Iterable[str], *, page: str) -> ConfigurationError:
    """Return the error of a flag's file, such as `users=users.yaml`, with all its problems."""
    lines = [f"{given} cannot be used, nothing was done:", *(f"  {each}" for each in problems)]
    return ConfigurationError("\n".join([*lines, f"  {page}"]))


class _Loader(yaml.SafeLoader):
    """YAML's types without dates and numbers of base 60: a time limit of 12:00:00 is text for Slurm."""


_DROPPED = {f"tag:yaml.org,2002:{name}" for name in ("timestamp", "int")}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _DROPPED]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int",
    re.compile(r"^[-+]?(0b[01_]+|0[0-7_]*|[1-9][0-9_]*|0x[0-9a-fA-F_]+)$"),
    list("-+0123456789"),
)


def _duplicates(node: yaml.Node, within: tuple[yaml.Node, ...] = (), *, of_names: bool) -> Iterator[str]:
    """Yield each key that is given twice, and each Name: YAML's reader takes the last key in silence."""
    line = node.start_mark.line + 1
    if any(node is each for each in within):
        yield f"line {line}: a value that contains itself"
        return
    inner = (*within, node)
    if isinstance(node, yaml.SequenceNode):
        yield from _twice((f"Name {key.value}", key) for key in (_names(node) if of_names else ()))
        for item in node.value:
            yield from _duplicates(item, inner, of_names=of_names)
    elif isinstance(node, yaml.MappingNode):
        yield from _twice((f"key {key.value}", key) for key, _ in node.value)
        for _, value in node.value:
            yield from _duplicates(value, inner, of_names=of_names)


def _twice(given: Iterable[tuple[str, yaml.Node]]) -> Iterator[str]:
    seen: dict[str, int] = {}
    for words, node in given:
        line = node.start_mark.line + 1
        if words in seen:
            yield f"line {line}: the {words} is on line {seen[words]} already"
        seen[words] = line


def _names(items: yaml.SequenceNode) -> Iterator[yaml.Node]:
    for item in items.value:
        if isinstance(item, yaml.MappingNode):
            yield from (value for key, value in item.value if key.value == "Name")
