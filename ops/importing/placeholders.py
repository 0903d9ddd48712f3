"""Completes a config that is a template: values that are still open become samples of the right form."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from ops.importing.config_file import branches, joined_text
from training_cluster.catalog.family import AWS_ID, INSTANCE_TYPE
from training_cluster.overrides.merge import texts
from training_cluster.pcluster.config_diff import shown
from training_cluster.pcluster.schema import is_valid, misread, with_types

_WORDS, _HOST = r"[^${}<>]+", r"[\w-]+(\.[\w-]+)+"
_FORMS = {
    **dict.fromkeys(("SubnetId", "SubnetIds"), rf"subnet-{AWS_ID}"),
    **dict.fromkeys(("SecurityGroups", "AdditionalSecurityGroups"), rf"sg-{AWS_ID}"),
    **{"CustomAmi": rf"ami-{AWS_ID}", "FileSystemId": rf"fs-{AWS_ID}"},
    "CapacityReservationId": rf"cr-{AWS_ID}",
    "CapacityReservationResourceGroupArn": r"arn:[\w-]+:resource-groups:\S+",
    "Policy": r"arn:[\w-]+:iam::\w*:policy/[\w+=,.@/-]+",
    "InstanceType": INSTANCE_TYPE,
    **dict.fromkeys(("KeyName", "Name", "BucketName", "MountDir", "DomainReadOnlyUser"), _WORDS),
    **{"UserName": r"[A-Za-z]\w*", "DomainName": r"[\w.=,-]+"},
    **{"Uri": rf"(mysql://)?{_HOST}(:\d+)?/?", "DomainAddr": rf"(ldaps?://)?{_HOST}(:\d+)?(,.+)?"},
}
"""Forms of keys for which the schema takes more than this app or AWS."""
_SAMPLES = (
    *("to-complete-{0}", "to_complete_{0}", "to-complete-{0}.example.com", "p5.48xlarge", "ubuntu2204"),
    *(f"{each}-{{0:017x}}" for each in "subnet sg ami fs cr fsvol vol snap fsap fc backup".split()),
    *(f"arn:aws:iam::{{0:012}}:{each}/to-complete" for each in ("policy", "role", "instance-profile")),
    "arn:aws:secretsmanager:us-east-1:{0:012}:secret:to-complete-AbCdEf",
    "arn:aws:resource-groups:us-east-1:{0:012}:group/to-complete",
    *("192.0.2.{0}/32", "03:00", "1:03:00"),
)
"""Samples of all forms: the first one that a key takes stands for its open value."""
_NUMBERS = {"Size": 100, "StorageCapacity": 1200, "MinCount": 1}
"""Samples of numbers, where the least that the schema takes is too small."""
_LISTED = ("SubnetIds", "SecurityGroups", "AdditionalSecurityGroups")
_KNOWN = {"AWS::Partition": "aws", "AWS::Region": "us-east-1", "AWS::URLSuffix": "amazonaws.com"}
_OPEN = re.compile(r"\$\{[^}]*\}")


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
        found = with_types(self._value(config, ()))
        for path, text, schema in misread(found):
            if "enum" in schema and not _OPEN.search(text):
                continue  # a wrong value, which the schema reports
            place, names = _place(found, path)
            place[path[-1]] = self._of_schema(text, schema, names)
        for where, text in texts(found):
            if _OPEN.search(text) and where != "Region":
                self._ask((where,), text, "replace it in the files")
        return found

    def _value(self, value: Any, path: tuple[str, ...]) -> Any:
        if (options := branches(value)) is not None:
            return self._first(*options, path=path)
        if (text := joined_text(value)) is not None:
            found = self._text(text, path)
            return [found] if path[-1] in _LISTED else found
        if isinstance(value, Mapping):
            return {key: self._value(inner, (*path, str(key))) for key, inner in value.items()}
        if isinstance(value, list):
            items = [self._item(each, path, number) for number, each in enumerate(value)]
            return [each for each in items if each is not None]
        return value

    def _first(self, condition: object, *values: Any, path: tuple[str, ...]) -> Any:
        """Return the value of a condition's first branch that has one."""
        found = [each for each in values if each is not None]
        if found:
            rest = ", ".join(shown(each) for each in found[1:]) or "nothing"
            words = f"{shown(found[0])}, as one case of {condition}; in the other: {rest}"
            self.fill.append(f"{_dotted(path)}: {words}")
        return self._value(found[0], path) if found else None

    def _item(self, item: Any, path: tuple[str, ...], number: int) -> Any:
        if (text := joined_text(item)) is not None:
            return self._text(text, path)
        name = item.get("Name", number) if isinstance(item, Mapping) else number
        return self._value(item, (*path, f"[{name}]"))

    def _text(self, text: str, path: tuple[str, ...]) -> str:
        for name, value in _KNOWN.items():
            text = text.replace(f"${{{name}}}", value)
        form = _FORMS.get(path[-1])
        if form is None or re.fullmatch(form, text):
            return text
        return self._sample(text, path, lambda sample: re.fullmatch(form, sample) is not None)

    def _of_schema(self, text: str, schema: Mapping[str, Any], path: tuple[str, ...]) -> str | int | bool:
        kind = schema.get("type")
        if kind in ("integer", "number", "boolean"):
            least = schema.get("enum", [schema.get("minimum", 1)])[0]
            sample = False if kind == "boolean" else _NUMBERS.get(path[-1], least)
            self._ask(path, text, f"{shown(sample)} stands for it")
            return sample
        return self._sample(text, path, lambda sample: is_valid(sample, schema))

    def _sample(self, text: str, path: tuple[str, ...], takes: Callable[[str], bool]) -> str:
        form = next((each for each in _SAMPLES if takes(each.format(1))), None)
        if form is None:
            return text
        if (form, text) not in self._samples:
            sample = self._samples[form, text] = form.format(len(self._samples) + 1)
            self._ask(path, text, f"put it in place of {sample}")
        return self._samples[form, text]

    def _ask(self, path: tuple[str, ...], text: str, words: str) -> None:
        self.fill.append(f"{_dotted(path)}: {shown(text)} is not a value yet: {words}")


def _place(config: Any, path: list[str | int]) -> tuple[Any, tuple[str, ...]]:
    """Return what holds the value at a path, and the path with the names of its items."""
    names: list[str] = []
    for each in path:
        place, config = config, config[each]
        name = config.get("Name", each) if isinstance(config, Mapping) else each
        names += [each] if isinstance(each, str) else [f"[{name}]"] if isinstance(config, Mapping) else []
    return place, tuple(names)


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(path).replace(".[", "[")
