"""Keys of ParallelCluster's schema that have an effect in a file of overrides: derived.txt."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from re import _parser  # type: ignore[attr-defined]  # without stubs
from typing import Any

import pytest
import yaml

from tests.unit.training_cluster.overrides.test_file_schema import FLAGS, SCHEMA, leaves, sample
from training_cluster.advice.advice import advice
from training_cluster.cluster.bundle import render_prices
from training_cluster.cluster.job_environment import render_job_environments
from training_cluster.cluster.nodes import Rendered, own_images
from training_cluster.flags.settings import Settings
from training_cluster.monitoring.published import Published
from training_cluster.overrides.nodes import own_roles
from training_cluster.pcluster.check import BUILT_IMAGE, config_before_deploy
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings

GOLDEN = Path(__file__).with_name("derived.txt")
POLICY = "arn:aws:iam::123456789012:policy/team"
BASE = read_settings({**FLAGS, "node_policies": POLICY})


def derived(config: Rendered, settings: Settings) -> dict[str, Any]:
    queues = config["Scheduling"]["SlurmQueues"]
    resources = [each for queue in queues for each in queue["ComputeResources"]]
    return {
        "environment": render_job_environments(config, settings),
        "prices": render_prices(config),
        "topology": [each.get("CustomSlurmSettings") for each in resources],
        "alarms": Published.by(config),
        "rights": own_roles(config),
        "images": own_images(config, built=BUILT_IMAGE),
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


def outcome(overrides: Any, file: Path) -> dict[str, Any] | None:
    """Return the effects of overrides; None if they are refused."""
    file.write_text(yaml.safe_dump(overrides))
    settings = BASE.model_copy(update={"overrides": str(file)})
    try:
        config = config_before_deploy(settings)
    except ConfigurationError:
        return None
    found = derived(config, settings)
    assert found == derived(config, BASE), "the config says it, not the flag with the file"
    return found


def effects(file: Path) -> Iterator[str]:
    plain = derived(config_before_deploy(BASE), BASE)
    for path, schema, wrap in leaves(SCHEMA, "", lambda value: value):
        without = outcome(wrap(None), file) or plain
        results = [each for value in values(schema) if (each := outcome(wrap(value), file))]
        changed = [name for name in plain if any(each[name] != without[name] for each in results)]
        if changed:
            yield f"{path}: {', '.join(changed)}\n"


@pytest.mark.slow  # a second of CPU for each hundred keys
def test_all_that_follows_is_of_the_config(tmp_path: Path) -> None:
    found = "".join(sorted(effects(tmp_path / "overrides.yaml")))
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(found)
    assert found == GOLDEN.read_text(), "read the difference, then: UPDATE_GOLDEN=1 pytest tests/unit"
