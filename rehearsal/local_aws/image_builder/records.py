"""Records of Image Builder: components, recipes, configurations, pipelines, images and policies, by ARN."""

import datetime
import re
from dataclasses import dataclass, field
from typing import Any

from rehearsal.local_aws.address import ACCOUNT, REGION

_NUMBER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
_NAME = re.compile(r"[-_A-Za-z0-9][-_A-Za-z0-9 ]{1,126}[-_A-Za-z0-9]")
_LARGEST = 2**30 - 1
"""Largest number in a part of a version."""


class RefusedError(ValueError):
    """A request that Image Builder refuses."""


@dataclass
class Record:
    """One resource of Image Builder."""

    arn: str
    kind: str
    """Kind of the resource as in the ARN, such as component or image-recipe."""
    name: str
    properties: dict[str, Any]
    """Properties in the template."""
    created: str = field(default_factory=lambda: datetime.datetime.now(datetime.UTC).isoformat())
    details: dict[str, Any] = field(default_factory=dict)
    """Results, such as the state and the AMI of an image."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """Major, minor, patch and build number, as far as the kind has them."""
        tail = self.arn.split(":", 5)[5].split("/")[2:]
        return tuple(int(number) for part in tail for number in part.split("."))


RECORDS: dict[str, Record] = {}


def make_arn(kind: str, name: str, *version: str) -> str:
    """Return the ARN of a resource, with its name in lower case and with dashes for spaces."""
    slug = name.lower().replace(" ", "-")
    return f"arn:aws:imagebuilder:{REGION}:{ACCOUNT}:{'/'.join([kind, slug, *version])}"


def add(kind: str, properties: dict[str, Any], *version: str) -> Record:
    """Store a new record.

    Args:
        version: parts of the version in the ARN: semantic version, build number.

    Raises:
        RefusedError: its name or version is not valid, or it already exists.
    """
    name = properties["Name"]
    if not _NAME.fullmatch(name):
        raise RefusedError(f"The value supplied for parameter 'name' is not valid: {name}")
    if version and not (
        _NUMBER.fullmatch(version[0]) and all(int(part) <= _LARGEST for part in version[0].split("."))
    ):
        raise RefusedError(f"The value supplied for parameter 'semanticVersion' is not valid: {version[0]}")
    arn = make_arn(kind, name, *version)
    if arn in RECORDS:
        resource = "".join(word.title() for word in kind.split("-"))
        raise RefusedError(
            f"Resource of type 'AWS::ImageBuilder::{resource}' with identifier '{arn}' already exists."
        )
    RECORDS[arn] = Record(arn=arn, kind=kind, name=name, properties=properties)
    return RECORDS[arn]


def next_number(kind: str, name: str, version: str) -> int:
    """Return the next number for the x of a version, or for the next build of a version."""
    wild = "x" in version
    counted = re.escape(version).replace("x", r"(\d+)") if wild else rf"{re.escape(version)}/(\d+)"
    pattern = f"{re.escape(make_arn(kind, name))}/{counted}"
    found = [int(match[1]) for arn in RECORDS if (match := re.fullmatch(pattern, arn))]
    return max(found, default=-1 if wild else 0) + 1


def find(arn: str, kind: str) -> Record:
    """Return a record by its ARN. Raises RefusedError if there is none of this kind."""
    record = RECORDS.get(arn)
    if record is None or record.kind != kind:
        raise RefusedError(f"The resource '{arn}' does not exist.")
    return record


def remove(arn: str) -> None:
    """Remove a record of a resource. Raises RefusedError: another resource needs it."""
    users = [
        each.arn
        for each in RECORDS.values()
        if (each.kind in ("image-recipe", "image-pipeline") and _mentions(each.properties, arn))
        or each.details.get("recipe") == arn
    ]
    if users:
        raise RefusedError(
            f"Resource dependency error: The resource ARN '{arn}' has other resources that depend on it: "
            f"{', '.join(users)}"
        )
    RECORDS.pop(arn, None)


def _mentions(value: Any, arn: str) -> bool:
    if isinstance(value, dict | list):
        return any(_mentions(each, arn) for each in (value.values() if isinstance(value, dict) else value))
    return bool(value == arn)
