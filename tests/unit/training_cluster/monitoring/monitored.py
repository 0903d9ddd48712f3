"""A stack with only Monitoring, and functions that read its template."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import aws_cdk as cdk
from aws_cdk.assertions import Template

from training_cluster.monitoring.monitoring import Monitoring
from training_cluster.paths import ROOT
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.rules.context import read_settings

LIBRARY = next((ROOT / ".venv-pcluster" / "lib").glob("python3*")) / "site-packages" / "pcluster"
EMAIL = "me@example.com"
HEAD_NODE, LUSTRE = "i-0123456789abcdef0", "fs-0123456789abcdef0"

Widget = dict[str, Any]
Flags = tuple[tuple[str, str], ...]


@cache
def stack_of(flags: Flags) -> cdk.Stack:
    stack, settings = cdk.Stack(cdk.App(), "Stack"), read_settings(dict(flags))
    Monitoring(
        stack,
        "Monitoring",
        settings=settings,
        config=config_before_deploy(settings),
        head_node_instance_id=HEAD_NODE,
        lustre_id=LUSTRE,
    )
    return stack


@cache
def _template(flags: Flags) -> Template:
    return Template.from_stack(stack_of(flags))


def monitored(**flags: str) -> Template:
    """Return the template for these context flags."""
    return _template(tuple(sorted(flags.items())))


def text(value: Any) -> str:
    """Return a joined string; a reference becomes the last word of its name, an attribute its owner."""
    if isinstance(value, str):
        return value
    return "".join(part if isinstance(part, str) else _name(part) for part in value["Fn::Join"][1])


def _name(reference: dict[str, Any]) -> str:
    return str(
        reference["Fn::GetAtt"][0] if "Fn::GetAtt" in reference else reference["Ref"].rpartition(":")[2]
    )


def widgets(template: Template) -> list[Widget]:
    """Return all widgets of the dashboard."""
    (dashboard,) = template.find_resources("AWS::CloudWatch::Dashboard").values()
    found: list[Widget] = json.loads(text(dashboard["Properties"]["DashboardBody"]))["widgets"]
    return found


def widget(template: Template, words: str) -> dict[str, Any]:
    """Return the properties of the one widget with these words in its title."""
    (found,) = (w["properties"] for w in widgets(template) if words in w["properties"].get("title", ""))
    return dict(found)


def series(properties: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, str], dict[str, Any]]]:
    """Yield namespace, name, dimensions and options of each metric of a widget, without expressions."""
    for entry in properties.get("metrics", []):
        options = entry[-1] if isinstance(entry[-1], dict) else {}
        if "expression" not in options:
            namespace, name, *pairs = [each for each in entry if isinstance(each, str)]
            yield namespace, name, dict(zip(pairs[::2], pairs[1::2], strict=True)), options


def alarms(template: Template) -> dict[str, dict[str, Any]]:
    """Return the properties of each alarm, by the last word of its name."""
    found = template.find_resources("AWS::CloudWatch::Alarm").values()
    return {each["Properties"]["AlarmName"].rpartition("_")[2]: each["Properties"] for each in found}


def metrics_of(template: Template) -> list[tuple[str, str, dict[str, str]]]:
    """Return every metric of the dashboard and of the alarms."""
    found = [
        (namespace, name, dimensions)
        for each in widgets(template)
        for namespace, name, dimensions, _ in series(each["properties"])
    ]
    for alarm in alarms(template).values():
        stats = [m["MetricStat"]["Metric"] for m in alarm.get("Metrics", []) if "MetricStat" in m]
        for metric in stats or [alarm]:
            dimensions = {each["Name"]: each["Value"] for each in metric["Dimensions"]}
            found.append((metric["Namespace"], metric["MetricName"], dimensions))
    return found
