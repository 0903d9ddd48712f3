"""The order of resources in a cloud assembly, and the longest path through it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Kind = Literal["reference", "explicit", "stack"]
"""Kind of an edge: a value that is used, a DependsOn without one, or a stack that the CDK deploys before."""


class GraphError(Exception):
    """The templates name something that does not exist, or wait in a circle. The message is complete."""


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One resource of one stack."""

    stack: str
    id: str
    type: str
    waits_for: Mapping[str, Kind] = field(default_factory=dict)
    """Kind of the edge to each resource that must exist before, by its name."""

    @property
    def name(self) -> str:
        """Name that is unique over all stacks."""
        return f"{self.stack}/{self.id}"


@dataclass(frozen=True, kw_only=True)
class Step:
    """One resource of a critical path."""

    resource: Resource
    begins_s: float
    ends_s: float
    after: Kind | None
    """Kind of the edge that delayed it; None if it began at once."""

    @property
    def duration_s(self) -> float:
        """Duration of the creation, in seconds."""
        return self.ends_s - self.begins_s


def read_assembly(folder: Path) -> dict[str, Resource]:
    """Read all resources of a cdk.out, by name. Raises GraphError."""
    artifacts = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["artifacts"]
    stacks = {name: each for name, each in artifacts.items() if each["type"] == "aws:cloudformation:stack"}
    templates = {
        name: json.loads((folder / each["properties"]["templateFile"]).read_text(encoding="utf-8"))
        for name, each in stacks.items()
    }
    before = {
        name: [other for other in each.get("dependencies", []) if other in stacks]
        for name, each in stacks.items()
    }
    return build_graph(templates, before)


def build_graph(
    templates: Mapping[str, Mapping[str, Any]], before: Mapping[str, Sequence[str]]
) -> dict[str, Resource]:
    """Return the resources with their edges.

    Args:
        templates: template of each stack, by the stack's name.
        before: for each stack, the stacks that are deployed before it.

    Raises:
        GraphError: a stack imports a value that no stack exports.
    """
    exported = {
        export: {f"{stack}/{id_}" for id_ in _local(output["Value"], template)}
        for stack, template in templates.items()
        for output in template.get("Outputs", {}).values()
        if isinstance(export := output.get("Export", {}).get("Name"), str)
    }
    resources = {}
    for stack, template in templates.items():
        barrier = [f"{other}/{id_}" for other in before[stack] for id_ in templates[other]["Resources"]]
        for id_, content in template["Resources"].items():
            waits: dict[str, Kind] = dict.fromkeys(barrier, "stack")
            waits |= {f"{stack}/{other}": "explicit" for other in _listed(content.get("DependsOn", []))}
            properties = content.get("Properties", {})
            waits |= {f"{stack}/{other}": "reference" for other in _local(properties, template)}
            for name in _imports(properties):
                if name not in exported:
                    raise GraphError(f"{stack}/{id_} imports {name!r}, which no stack exports.")
                waits |= dict.fromkeys(exported[name], "reference")
            each = Resource(stack=stack, id=id_, type=content["Type"], waits_for=waits)
            resources[each.name] = each
    return resources


def critical_path(
    resources: Mapping[str, Resource],
    seconds: Mapping[str, float],
    *,
    otherwise_s: float,
    kinds: Sequence[Kind] = ("reference", "explicit", "stack"),
) -> list[Step]:
    """Return the path that determines the time of the deploy, from its first resource to its last.

    Args:
        seconds: creation time of each resource type.
        otherwise_s: creation time of types that are not in `seconds`.
        kinds: kinds of edges that count; the others are ignored.

    Raises:
        GraphError: resources wait for each other in a circle.
    """
    steps: dict[str, Step] = {}
    last: dict[str, str | None] = {}
    for name in _in_order(resources, kinds):
        each = resources[name]
        held = [other for other, kind in each.waits_for.items() if kind in kinds]
        # Among several edges that end together, a reference counts: the start needs it in any case.
        last[name] = max(
            held,
            key=lambda other: (steps[other].ends_s, each.waits_for[other] == "reference"),
            default=None,
        )
        before = last[name]
        begins = steps[before].ends_s if before else 0.0
        steps[name] = Step(
            resource=each,
            begins_s=begins,
            ends_s=begins + seconds.get(each.type, otherwise_s),
            after=each.waits_for[before] if before else None,
        )
    at: str | None = max(steps, key=lambda name: steps[name].ends_s)
    path = []
    while at:
        path.append(steps[at])
        at = last[at]
    return path[::-1]


def _in_order(resources: Mapping[str, Resource], kinds: Sequence[Kind]) -> Iterator[str]:
    """Yield each resource after those that it waits for."""
    left = {
        name: {other for other, kind in each.waits_for.items() if kind in kinds}
        for name, each in resources.items()
    }
    while left:
        free = [name for name, others in left.items() if not others & left.keys()]
        if not free:
            raise GraphError(f"These wait for each other: {', '.join(sorted(left))}.")
        yield from free
        for name in free:
            del left[name]


def _local(value: Any, template: Mapping[str, Any]) -> set[str]:
    """Return the ids of the template's own resources that a value names."""
    found: set[str] = set()
    for function, argument in _functions(value):
        if function == "Ref":
            found.add(argument)
        elif function == "Fn::GetAtt":
            found.add((argument if isinstance(argument, list) else argument.split("."))[0])
        elif function == "Fn::Sub":
            text = argument[0] if isinstance(argument, list) else argument
            found |= {part.partition("}")[0].partition(".")[0] for part in text.split("${")[1:]}
    return found.intersection(template["Resources"])


def _imports(value: Any) -> set[str]:
    return {argument for function, argument in _functions(value) if function == "Fn::ImportValue"}


def _functions(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield every object with one key, at any depth: the form of CloudFormation's functions."""
    if isinstance(value, Mapping):
        if len(value) == 1:
            yield from value.items()
        for each in value.values():
            yield from _functions(each)
    elif isinstance(value, list):
        for each in value:
            yield from _functions(each)


def _listed(value: str | Sequence[str]) -> Sequence[str]:
    return [value] if isinstance(value, str) else value
