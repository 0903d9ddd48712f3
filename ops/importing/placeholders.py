"""Completes a config that is a template: values that are still open become samples of the right form."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ops.importing.config_file import joined_text
from training_cluster.catalog.family import AWS_ID, INSTANCE_TYPE
from training_cluster.pcluster.config_diff import shown


@dataclass(frozen=True)
class Form:
    """Form of the values of a key."""

    pattern: str
    sample: Callable[[int], str]
    """Makes the sample of a number."""


def _id(prefix: str) -> Form:
    return Form(rf"{prefix}-{AWS_ID}", lambda number: f"{prefix}-{number:017x}")


def _arn(pattern: str, of: str) -> Form:
    return Form(pattern, lambda number: of.format(f"{number:012d}"))


_DATABASE = {
    "Uri": Form(r"(mysql://)?[\w-]+(\.[\w-]+)+(:\d+)?/?", lambda _: "database.example.com:3306"),
    "UserName": Form(r"[A-Za-z]\w*", lambda _: "slurm"),
    "PasswordSecretArn": _arn(r"arn:\S+", "arn:aws:secretsmanager:us-east-1:{}:secret:to-complete-AbCdEf"),
}
_FORMS: Mapping[str, Form] = {
    **dict.fromkeys(("SubnetId", "SubnetIds"), _id("subnet")),
    **dict.fromkeys(("SecurityGroups", "AdditionalSecurityGroups"), _id("sg")),
    "CustomAmi": _id("ami"),
    "FileSystemId": _id("fs"),
    "CapacityReservationId": _id("cr"),
    "CapacityReservationResourceGroupArn": _arn(
        r"arn:\S+", "arn:aws:resource-groups:us-east-1:{}:group/to-complete"
    ),
    "Policy": _arn(r"arn:[^:]+:iam::\w*:policy/\S+", "arn:aws:iam::{}:policy/to-complete"),
    "InstanceType": Form(INSTANCE_TYPE, lambda _: "p5.48xlarge"),
    "Os": Form(r"\w+", lambda _: "ubuntu2204"),
    **dict.fromkeys(
        ("KeyName", "Name", "BucketName"), Form(r"[^${}<>]+", lambda number: f"to-complete-{number}")
    ),
    "MountDir": Form(r"[^${}<>]+", lambda number: f"/to-complete-{number}"),
}
_VOLUMES = {"FsxOpenZfsSettings": _id("fsvol"), "FsxOntapSettings": _id("fsvol"), "EbsSettings": _id("vol")}
_NUMBERS = {
    **{"MinCount": 1, "MaxCount": 1, "Count": 1, "Size": 100, "StorageCapacity": 1200},
    **{"HeadNodeBootstrapTimeout": 1800, "ComputeNodeBootstrapTimeout": 1800},
}
"""Keys with a whole number, and a sample for each."""
_LISTED = ("SubnetIds", "SecurityGroups", "AdditionalSecurityGroups")
_KNOWN = {"AWS::Partition": "aws", "AWS::Region": "us-east-1", "AWS::URLSuffix": "amazonaws.com"}


class Completion:
    """Fills a config in. The same text becomes the same sample, so that nodes of one subnet stay in one.

    Attributes:
        fill: a sentence for each value that the user has to give.
    """

    def __init__(self) -> None:
        self.fill: list[str] = []
        self._samples: dict[tuple[str, str], str] = {}

    def config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the config with samples for values that have no form of their key."""
        return {key: self._value(value, (key,)) for key, value in config.items()}

    def _value(self, value: Any, path: tuple[str, ...]) -> Any:
        text = joined_text(value)
        if text is not None:
            found = self._text(text, path)
            return [found] if path[-1] in _LISTED else found
        if isinstance(value, Mapping):
            return {key: self._value(inner, (*path, str(key))) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._item(each, path, number) for number, each in enumerate(value)]
        return value

    def _item(self, item: Any, path: tuple[str, ...], number: int) -> Any:
        if (text := joined_text(item)) is not None:
            return self._text(text, path)
        name = item.get("Name", number) if isinstance(item, Mapping) else number
        return self._value(item, (*path, f"[{name}]"))

    def _text(self, text: str, path: tuple[str, ...]) -> str | int:
        key = path[-1]
        for name, value in _KNOWN.items():
            text = text.replace(f"${{{name}}}", value)
        if key in _NUMBERS:
            return int(text) if text.strip().isdigit() else self._number(text, path)
        form = _form(path)
        if form is None or re.fullmatch(form.pattern, text):
            return text
        return self._sample(text, form, path)

    def _number(self, text: str, path: tuple[str, ...]) -> int:
        sample = _NUMBERS[path[-1]]
        self.fill.append(f"{_dotted(path)}: {shown(text)} is not a number yet: {sample} stands for it")
        return sample

    def _sample(self, text: str, form: Form, path: tuple[str, ...]) -> str:
        asked = (form.pattern, text)
        if asked not in self._samples:
            self._samples[asked] = form.sample(len(self._samples) + 1)
            words = f"{shown(text)} is not a value yet: put it in place of {self._samples[asked]}"
            self.fill.append(f"{_dotted(path)}: {words}")
        return self._samples[asked]


def _form(path: tuple[str, ...]) -> Form | None:
    key, parent = path[-1], path[-2] if len(path) > 1 else ""
    if key == "VolumeId":
        return _VOLUMES.get(parent)
    return _DATABASE.get(key) if parent == "Database" else _FORMS.get(key)


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(path).replace(".[", "[")
