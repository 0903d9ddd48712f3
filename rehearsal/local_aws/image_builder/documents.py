"""Checks of a component's document by Image Builder's rules (pure). The document is never run.

The rules are from the user guide ("Use the AWSTOE component document framework", "Action modules").
"""

import re
from collections.abc import Iterator
from typing import Any

import yaml

# Required inputs of each action, for the modules that work on Linux.
_ACTIONS: dict[str, tuple[str, ...]] = {
    "Assert": (),
    "ExecuteBash": ("commands",),
    "ExecuteBinary": ("path",),
    "ExecuteDocument": ("document",),
    "Reboot": (),
    "UpdateOS": (),
    "WebDownload": ("source", "destination"),
    "S3Download": ("source", "destination"),
    "S3Upload": ("source", "destination"),
    "CreateFile": ("path", "content"),
    "AppendFile": ("path", "content"),
    "ReadFile": ("path",),
    "DeleteFile": ("path",),
    "ListFiles": ("path",),
    "CopyFile": ("source", "destination"),
    "MoveFile": ("source", "destination"),
    "CreateSymlink": ("path", "target"),
    "SetFileEncoding": ("path", "encoding"),
    "SetFileOwner": ("path", "owner"),
    "SetFilePermissions": ("path", "permissions"),
    "CreateFolder": ("path",),
    "DeleteFolder": ("path",),
    "CopyFolder": ("source", "destination"),
    "MoveFolder": ("source", "destination"),
    "SetFolderOwner": ("path", "owner"),
    "SetFolderPermissions": ("path", "permissions"),
}
_PHASES = frozenset({"build", "validate", "test"})
_STEP_KEYS = frozenset(
    {"name", "action", "inputs", "timeoutSeconds", "onFailure", "maxAttempts", "loop", "if"}
)
_REFERENCE = re.compile(r"\{\{\s*([^}]*?)\s*\}\}")
_OF_THE_SERVICE = ("loop.", "imagebuilder:", "aws:", "global:")


class DocumentError(Exception):
    """A document that Image Builder refuses. The message has the place and the reason."""


def read(data: str) -> dict[str, Any]:
    """Parse a component's document.

    Raises:
        DocumentError: it is not YAML, or breaks a rule.
    """
    try:
        document = yaml.safe_load(data)
    except yaml.YAMLError as error:
        raise DocumentError(f"the document is not YAML: {error}") from None
    if not isinstance(document, dict):
        raise DocumentError("the document is not a mapping")
    problem = next(_problems(document), None)
    if problem:
        raise DocumentError(problem)
    return document


def parameters(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the parameters that a document declares, by name."""
    return {name: facts for each in document.get("parameters") or [] for name, facts in each.items()}


def missing_parameters(document: dict[str, Any], given: set[str]) -> str:
    """Describe the problem of the parameters that a recipe gives; empty if there is none."""
    declared = parameters(document)
    if unknown := given - set(declared):
        return f"parameters that the component does not declare: {', '.join(sorted(unknown))}"
    lacking = sorted(name for name, facts in declared.items() if "default" not in facts and name not in given)
    return f"parameters without a value: {', '.join(lacking)}" if lacking else ""


def _problems(document: dict[str, Any]) -> Iterator[str]:
    if str(document.get("schemaVersion")) != "1.0":
        yield f"schemaVersion is {document.get('schemaVersion')!r}, not 1.0"
    phases = document.get("phases")
    if not isinstance(phases, list) or not all(isinstance(each, dict) for each in phases):
        yield "phases is not a list of phases"
        return
    names = [each.get("name") for each in phases]
    if len(set(names)) < len(names):
        yield f"a phase's name occurs twice: {names}"
    if not _PHASES & set(names):
        yield f"the phases are {names}; at least one of {sorted(_PHASES)} is required"
    constants = {name for each in document.get("constants") or [] for name in each}
    known = {*constants, *parameters(document)}
    for phase in phases:
        yield from _problems_of_phase(phase, known=known, phases=set(names))


def _problems_of_phase(phase: dict[str, Any], *, known: set[str], phases: set[Any]) -> Iterator[str]:
    steps = phase.get("steps")
    if not isinstance(steps, list) or not steps:
        yield f"{phase.get('name')}: it has no steps"
        return
    names = [each.get("name") for each in steps]
    if len(set(names)) < len(names):
        yield f"{phase['name']}: a step's name occurs twice: {names}"
    for step in steps:
        where = f"{phase['name']}.{step.get('name')}"
        for problem in _problems_of_step(step):
            yield f"{where}: {problem}"
        for reference in _REFERENCE.findall(yaml.safe_dump(step, width=10_000)):
            head = reference.partition(".")[0]
            if reference not in known and head not in phases and not reference.startswith(_OF_THE_SERVICE):
                yield f"{where}: {{{{ {reference} }}}} is not a parameter, constant or output of a step"


def _problems_of_step(step: dict[str, Any]) -> Iterator[str]:
    if not step.get("name"):
        yield "a step has no name"
    if unknown := set(step) - _STEP_KEYS:
        yield f"a step cannot have {sorted(unknown)}"
    action = step.get("action")
    if action not in _ACTIONS:
        yield f"there is no action {action} on Linux"
        return
    if step.get("onFailure", "Abort") not in ("Abort", "Continue", "Ignore"):
        yield f"onFailure is {step['onFailure']}, not Abort, Continue or Ignore"
    for key in ("timeoutSeconds", "maxAttempts"):
        if not isinstance(step.get(key, 1), int):
            yield f"{key} is {step[key]!r}, not a number"
    inputs = step.get("inputs") or {}
    for each in inputs if isinstance(inputs, list) else [inputs]:
        if lacking := [name for name in _ACTIONS[str(action)] if not each.get(name)]:
            yield f"{action} lacks {lacking}"
    if action == "ExecuteBash":
        commands = inputs.get("commands") if isinstance(inputs, dict) else None
        if not isinstance(commands, list) or not all(isinstance(each, str) for each in commands):
            yield "commands is not a list of strings"
