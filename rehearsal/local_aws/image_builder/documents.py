"""Checks of a component's document by Image Builder's rules (pure). The document is never run.

The rules are from the user guide ("Use the AWSTOE component document framework", "Action modules"), for the
actions of the app's document.
"""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

_REFERENCE = re.compile(r"\{\{\s*([^}]*?)\s*\}\}")
_OF_THE_SERVICE = ("loop.", "imagebuilder:", "aws:", "global:")


class DocumentError(Exception):
    """A document that Image Builder refuses. The message has the place and the reason."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)


class _Commands(_Part):
    commands: list[str] = Field(min_length=1)


class _Object(_Part):
    source: str = Field(min_length=1)
    destination: str = Field(min_length=1)
    overwrite: bool = True


class _Step(_Part):
    name: str = Field(min_length=1)
    timeout_seconds: int = 7200
    max_attempts: int = 1
    on_failure: Literal["Abort", "Continue", "Ignore"] = "Abort"


class _Bash(_Step):
    action: Literal["ExecuteBash"]
    inputs: _Commands


class _Download(_Step):
    action: Literal["S3Download"]
    inputs: list[_Object] = Field(min_length=1)


def _once(parts: list[Any]) -> list[Any]:
    names = [each.name for each in parts]
    if len(set(names)) < len(names):
        raise ValueError(f"a name occurs twice: {names}")
    return parts


class _Phase(_Part):
    name: Literal["build", "validate", "test"]
    steps: Annotated[
        list[Annotated[_Bash | _Download, Field(discriminator="action")]],
        AfterValidator(_once),
        Field(min_length=1),
    ]


class _Document(_Part):
    name: str = ""
    description: str = ""
    schema_version: float = Field(ge=1, le=1)
    parameters: list[dict[str, dict[str, Any]]] = []
    phases: Annotated[list[_Phase], AfterValidator(_once), Field(min_length=1)]


def read(data: str) -> dict[str, Any]:
    """Parse a component's document.

    Raises:
        DocumentError: it is not YAML, or breaks a rule.
    """
    try:
        document: dict[str, Any] = yaml.safe_load(data)
        _Document.model_validate(document)
    except yaml.YAMLError as error:
        raise DocumentError(f"the document is not YAML: {error}") from None
    except ValidationError as error:
        [first, *_] = error.errors()
        raise DocumentError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    for problem in _unknown_references(document):
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


def _unknown_references(document: dict[str, Any]) -> Iterator[str]:
    known = {*parameters(document), *(phase["name"] for phase in document["phases"])}
    for phase in document["phases"]:
        for step in phase["steps"]:
            for reference in _REFERENCE.findall(yaml.safe_dump(step, width=10_000)):
                head = reference.partition(".")[0]
                if not {reference, head} & known and not reference.startswith(_OF_THE_SERVICE):
                    where = f"{phase['name']}.{step['name']}"
                    yield f"{where}: {{{{ {reference} }}}} is not a parameter or output of a step"
