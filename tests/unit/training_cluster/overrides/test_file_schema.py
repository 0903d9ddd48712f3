"""Every key of ParallelCluster's schema, in a file of overrides: it is kept, or refused with a message."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.pcluster_library import refusals
from training_cluster.pcluster import check
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings

SCHEMA: dict[str, Any] = json.loads(
    Path(check.__file__).with_name("pcluster_config.schema.json").read_text(encoding="utf-8")
)
FLAGS = {"family": "p5", "login_nodes": "1"}
NAMES = {"SlurmQueues": "gpu", "ComputeResources": "p5", "Pools": "login", "SharedStorage": "apps"}
Wrap = Callable[[Any], Any]


def resolved(schema: Mapping[str, Any]) -> dict[str, Any]:
    given = dict(schema)
    reference = given.pop("$ref", None)
    return {**SCHEMA["$defs"][reference.split("/")[-1]], **given} if reference else given


def sample(schema: Mapping[str, Any]) -> Any:
    """A value that the schema allows."""
    schema = resolved(schema)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    match kind[0] if isinstance(kind, list) else kind:
        case "boolean":
            return True
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "array":
            return [sample(schema.get("items", {"type": "string"}))]
        case "object":
            keys = schema.get("properties", {})
            return {key: sample(keys[key]) for key in schema.get("required", []) if key in keys}
        case _:
            return "x" * max(1, schema.get("minLength", 1))


def within(wrap: Wrap, key: str) -> Wrap:
    return lambda value: wrap({key: value})


def within_item(wrap: Wrap, fixed: Mapping[str, Any], key: str) -> Wrap:
    return lambda value: wrap([{**fixed, key: value}])


def leaves(schema: Mapping[str, Any], path: str, wrap: Wrap) -> Iterator[tuple[str, dict[str, Any], Wrap]]:
    """Path, schema and maker of overrides of each key that holds no keys itself."""
    schema = resolved(schema)
    items = resolved(schema.get("items", {}))
    if "properties" in schema:
        for key, inner in schema["properties"].items():
            yield from leaves(inner, f"{path}.{key}" if path else key, within(wrap, key))
    elif schema.get("type") == "array" and "properties" in items:
        name = path.rsplit(".", 1)[-1]
        fixed = {} if name in NAMES and name != "SharedStorage" else sample(items)
        fixed |= {"Name": NAMES[name]} if name in NAMES else {}
        fixed |= {"MountDir": "/apps"} if name == "SharedStorage" else {}
        for key, inner in items["properties"].items():
            kind = key.removesuffix("Settings")
            of_kind = {"StorageType": kind} if name == "SharedStorage" and kind != key else {}
            yield from leaves(inner, f"{path}[].{key}", within_item(wrap, fixed | of_kind, key))
    else:
        yield path, schema, wrap


def values_at(config: Any, path: str) -> list[Any]:
    found = [config]
    for part in path.replace("[]", ".[]").split("."):
        if part == "[]":
            found = [item for each in found if isinstance(each, list) for item in each]
        else:
            found = [each[part] for each in found if isinstance(each, dict) and part in each]
    return found


def is_kept(config: Any, path: str, value: Any) -> bool:
    # Lists may have items of ours beside the given ones. An empty mapping has nothing that could be lost.
    return value == {} or any(
        each == value
        or (isinstance(value, list) and isinstance(each, list) and all(x == {} or x in each for x in value))
        for each in values_at(config, path)
    )


@pytest.fixture
def rendered() -> dict[str, Any]:
    """The rendered config of each key that is kept."""
    return {}


@pytest.fixture
def outcomes(tmp_path: Path, rendered: dict[str, Any]) -> dict[str, str]:
    """What becomes of each key: kept, lost, or the message that refuses it."""
    file, found = tmp_path / "overrides.yaml", {}
    for path, schema, wrap in leaves(SCHEMA, "", lambda value: value):
        value = sample(schema)
        file.write_text(yaml.safe_dump(wrap(value)), encoding="utf-8")
        try:
            settings = read_settings({**FLAGS, "overrides": str(file)})
            config = check.checked_config(settings)
            found[path] = "kept" if is_kept(config, path, value) else "lost"
            rendered[path] = config
        except ConfigurationError as error:
            found[path] = str(error)
    return found


# Keys that the library takes only beside another key, or with a value of a form that the schema does not say.
TOGETHER = {
    "DevSettings.Cookbook.ExtraChefAttributes",
    "SharedStorage[].EfsSettings.ProvisionedThroughput",
    "SharedStorage[].EfsSettings.ThroughputMode",
}
# Groups are added to ours, under ours' key.
MOVED = {
    "HeadNode.Networking.AdditionalSecurityGroups",
    "LoginNodes.Pools[].Networking.AdditionalSecurityGroups",
    "Scheduling.SlurmQueues[].Networking.AdditionalSecurityGroups",
}


@pytest.mark.slow
def test_each_key_is_kept_or_refused(outcomes: dict[str, str], rendered: dict[str, Any]) -> None:
    assert {path for path, outcome in outcomes.items() if outcome == "lost"} <= MOVED
    refused = dict(zip(rendered, refusals(list(rendered.values())), strict=True))
    assert {path: said for path, said in refused.items() if said and path not in TOGETHER} == {}
    kept = [path for path, outcome in outcomes.items() if outcome == "kept"]
    assert len(outcomes) > 200
    assert len(kept) > 80
    assert {"HeadNode.Imds.Secured", "Scheduling.SlurmQueues[].ComputeResources[].SchedulableMemory"} <= set(
        kept
    )
    short = [path for path, outcome in outcomes.items() if outcome != "kept" and "\n" not in outcome]
    assert short == []
