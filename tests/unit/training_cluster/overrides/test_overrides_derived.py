"""Keys of ParallelCluster's schema that have an effect in a file of overrides: derived.txt."""

import io
import os
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from re import _parser  # type: ignore[attr-defined]  # without stubs
from typing import Any

import pytest
import yaml
from aws_cdk import Stack

from ops.preflight.capacity.vcpus import wanted_instances
from ops.price.metrics import metrics_cost
from ops.price.price_book import catalog_book
from ops.price.quote import make_quote
from tests.unit.training_cluster.overrides.test_file_schema import FLAGS, SCHEMA, leaves, resolved, sample
from training_cluster.advice.advice import advice
from training_cluster.cluster.bundle import build_bundle
from training_cluster.cluster.fleet import volumes
from training_cluster.cluster.nodes import Rendered, own_images
from training_cluster.cluster.users_role import trusted_roles
from training_cluster.cluster.zone_needs import zone_needs
from training_cluster.flags.settings import Settings
from training_cluster.monitoring.published import Published
from training_cluster.overrides.nodes import own_roles
from training_cluster.pcluster.check import BUILT_IMAGE, config_before_deploy
from training_cluster.permissions.overrides import attachable, grants, managed_types
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings

GOLDEN = Path(__file__).with_name("derived.txt")
POLICY = "arn:aws:iam::123456789012:policy/team"
BOOK, STACK = catalog_book(), Stack()


def base(folder: Path, **flags: str) -> Settings:
    users = folder / "users.yaml"
    users.write_text("users: {alice: {uid: 5001}}")
    return read_settings({**FLAGS, "node_policies": POLICY} | {k: v.format(users) for k, v in flags.items()})


def derived(config: Rendered, settings: Settings, empty: Path) -> dict[str, Any]:
    scheduling = config["Scheduling"]
    queues = scheduling["SlurmQueues"]
    resources = [each for queue in queues for each in queue["ComputeResources"]]
    bundle = build_bundle(settings=settings, config=config, assets=empty)
    with tarfile.open(fileobj=io.BytesIO(bundle)) as archive:
        files = {each.name: archive.extractfile(each).read() for each in archive}  # type: ignore[union-attr]
    settings_of = [scheduling["SlurmSettings"], *queues, *resources]
    roles = trusted_roles(settings.cluster_name, config)
    return files | {
        "slurm.conf": [each.get("CustomSlurmSettings") for each in settings_of],
        "alarms": Published.by(config),
        "permissions": STACK.resolve([*(each.to_json() for each in grants(config)), *attachable(config)]),
        "types": managed_types(config),
        "rights": [own_roles(config), STACK.resolve(roles)],
        "images": own_images(config, built=BUILT_IMAGE),
        "zone": zone_needs(settings, config),
        "instances": wanted_instances(config),
        "metrics": metrics_cost(config),
        "volumes": list(volumes(config)),
        "quote": make_quote(settings, BOOK, config),
        "advice": [each.text for each in advice(settings, config)],
    }


def shortest(parts: Any) -> str:
    """A short text that matches a parsed regular expression."""
    found = ""
    for kind, given in parts:
        match str(kind):
            case "LITERAL":
                found += chr(given)
            case "IN" if str(given[0][0]) in {"LITERAL", "RANGE"}:
                found += chr(given[0][1] if str(given[0][0]) == "LITERAL" else given[0][1][0])
            case "IN" | "ANY" | "NOT_LITERAL":
                found += "1"
            case "MAX_REPEAT":
                found += shortest(given[2]) * given[0]
            case "SUBPATTERN":
                found += shortest(given[3])
            case "BRANCH":
                found += shortest(given[1][0])
    return found


def values(schema: dict[str, Any]) -> list[Any]:
    """Values of the form that the schema asks for; both of a switch."""
    if "pattern" in schema:
        text = shortest(_parser.parse(schema["pattern"]))
        assert re.search(schema["pattern"], text), schema["pattern"]
        return [text]
    return [True, False] if schema.get("type") == "boolean" else [sample(schema)]


def filled(given: Any, schema: dict[str, Any], ours: Any) -> Any:
    """Return overrides with the required keys of each mapping that the cluster does not have yet."""
    schema = resolved(schema)
    if isinstance(given, list) and given and isinstance(given[0], dict):
        named = {each.get("Name"): each for each in ours or ()}
        return [filled(each, schema["items"], named.get(each.get("Name"))) for each in given]
    if not isinstance(given, dict) or "properties" not in schema:
        return given
    keys, mine = schema["properties"], ours or {}
    inner = {key: filled(value, keys[key], mine.get(key)) for key, value in given.items()}
    return (sample(schema) if ours is None else {}) | inner


def outcome(overrides: Any, file: Path, flags: Settings) -> dict[str, Any] | None:
    """Return the effects of overrides; None if they are refused."""
    file.write_text(yaml.safe_dump(overrides))
    settings = flags.model_copy(update={"overrides": str(file)})
    try:
        config = config_before_deploy(settings)
    except ConfigurationError:
        return None
    found, again = (derived(config, each, file.parent / "empty") for each in (settings, flags))
    assert found == again, "the config says it, not the flag with the file"
    return found


def effects(file: Path, flags: Settings) -> Iterator[tuple[str, str]]:
    ours = config_before_deploy(flags)
    plain = derived(ours, flags, file.parent / "empty")
    for path, schema, wrap in leaves(SCHEMA, "", lambda value: value):
        without = outcome(filled(wrap(None), SCHEMA, ours), file, flags) or plain
        given = [filled(wrap(value), SCHEMA, ours) for value in values(schema)]
        results = [found for each in given if (found := outcome(each, file, flags))]
        yield from ((path, name) for name in plain if any(each[name] != without[name] for each in results))


@pytest.mark.slow  # a second of CPU for each hundred keys
def test_all_that_follows_is_of_the_config(tmp_path: Path) -> None:
    changed: dict[str, dict[str, None]] = {}
    for flags in ({}, {"users": "{}", "accounting": "new"}, {"users": "{}"}):
        for path, name in effects(tmp_path / "overrides.yaml", base(tmp_path, **flags)):
            changed.setdefault(path, {})[name] = None
    found = "".join(f"{path}: {', '.join(names)}\n" for path, names in sorted(changed.items()))
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(found)
    assert found == GOLDEN.read_text(), "read the difference, then: UPDATE_GOLDEN=1 pytest tests/unit"
