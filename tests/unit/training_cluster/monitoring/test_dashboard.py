"""The dashboard: whether it fits, and whether anything publishes what it shows."""

import itertools
import re

import pytest

from ops.asset_code import asset_code
from tests.unit.training_cluster.monitoring.monitored import (
    EMAIL,
    HEAD_NODE,
    LIBRARY,
    metrics_of,
    monitored,
    widget,
    widgets,
)
from training_cluster.monitoring.dashboard import LIBRARY_ALARMS
from training_cluster.monitoring.metrics import NODE_STATES
from training_cluster.monitoring.published import LAUNCH_FAILURES
from training_cluster.paths import ASSETS
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.rules.context import read_settings
from training_cluster.stack_names import DEFAULT_CLUSTER

VARIANTS: list[dict[str, str]] = [
    {},
    {"family": "m6i"},
    {"family": "trn1", "cpu_queue": "on", "alarm_email": EMAIL, "budget_usd": "5000"},
]
BUILDER = (LIBRARY / "templates" / "cw_dashboard_builder.py").read_text()


@pytest.mark.parametrize("flags", VARIANTS, ids=str)
def test_every_row_is_full_of_widgets_with_titles(flags: dict[str, str]) -> None:
    found = widgets(monitored(**flags))
    for each in found:
        properties = each["properties"]
        if each["type"] == "text":
            assert properties["markdown"].startswith("# ")
        else:
            assert properties["title"]
            assert properties.get("metrics") or properties.get("alarms")
    for _, row in itertools.groupby(sorted(found, key=lambda each: each["y"]), key=lambda each: each["y"]):
        places = sorted((each["x"], each["x"] + each["width"], each["height"]) for each in row)
        edges = [edge for start, end, _ in places for edge in (start, end)]
        assert (edges[0], edges[-1]) == (0, 24)
        assert edges[1:-1:2] == edges[2:-1:2], "a gap, or one widget over another"
        assert len({height for *_, height in places}) == 1


@pytest.mark.parametrize("flags", VARIANTS, ids=str)
def test_the_text_counts_the_metrics_that_are_paid(flags: dict[str, str]) -> None:
    template = monitored(**flags)
    (guide,) = (w["properties"]["markdown"] for w in widgets(template) if w["type"] == "text")
    assert f"`/aws/parallelcluster/{DEFAULT_CLUSTER}-`" in guide
    own = {
        (name, *sorted(dimensions.items()))
        for namespace, name, dimensions in metrics_of(template)
        if namespace == "TrainingCluster"
    }
    # It is published, and paid, only while there is one.
    paid = [name for name, *_ in own if name != "BrakedChecks"]
    assert f"has {len(paid)} metrics, however many nodes run" in guide


def test_parallelcluster_publishes_what_is_shown() -> None:
    filters = set(re.findall(r'metric_name="(\w+)",\s*filter_pattern', BUILDER))
    assert len(filters) > 10
    constants = (LIBRARY / "constants.py").read_text()
    heartbeat = re.search(r'CW_METRICS_CLUSTERMGTD_HEARTBEAT = "(\w+)"', constants)
    assert heartbeat
    assert 'custom_namespace = "ParallelCluster"' in BUILDER
    assert 'CW_METRICS_NAMESPACE = "ParallelCluster"' in constants
    agents = set(re.findall(r'metrics=\["(\w+_used_percent)"\]', BUILDER))
    for namespace, name, dimensions in metrics_of(monitored(**VARIANTS[-1])):
        if namespace == "ParallelCluster" and name == heartbeat[1]:
            assert dimensions == {"ClusterName": DEFAULT_CLUSTER, "InstanceId": HEAD_NODE}
        elif namespace == "ParallelCluster":
            assert name in filters
            assert dimensions == {"ClusterName": DEFAULT_CLUSTER}
        elif namespace == "CWAgent":
            assert name in agents
            path = {"path": "/"} if name == "disk_used_percent" else {}
            assert dimensions == {"InstanceId": HEAD_NODE, **path}
        else:
            assert namespace in {"AWS/EC2", "AWS/FSx", "AWS/Billing", "TrainingCluster"}


def test_every_config_makes_the_library_publish() -> None:
    """Filters of custom actions exist if a queue has some; none at all without logs in CloudWatch."""
    conditional = BUILDER.partition("if self.config.has_custom_actions_in_queue")[2].partition(
        "cluster_health_metrics."
    )[0]
    used = {name for name in LAUNCH_FAILURES if f'"{name}"' in conditional}
    assert used == {"OnNodeConfiguredDownloadErrors", "OnNodeConfiguredRunErrors"}
    launch = BUILDER.partition("jobs_not_starting_errors = [")[2].partition("]\n")[0]
    assert set(re.findall(r'metric_name="(\w+)"', launch)) <= set(LAUNCH_FAILURES)
    config = config_before_deploy(read_settings({"cpu_queue": "on"}))
    assert config["Monitoring"]["Logs"]["CloudWatch"]["Enabled"] is True
    assert not {"Dashboards", "Alarms"} & set(config["Monitoring"]), "its dashboard makes its filters"
    assert all("OnNodeConfigured" in q["CustomActions"] for q in config["Scheduling"]["SlurmQueues"])


def test_all_alarms_are_shown_with_their_names() -> None:
    source = (LIBRARY / "templates" / "cluster_stack.py").read_text()
    assert 'alarm_name = f"{self.stack.stack_name}-HeadNode-{metric_key}"' in source
    for name in LIBRARY_ALARMS:
        assert f'"{name}": {{' in source
    shown = widget(monitored(), "Alarms")["alarms"]
    assert f"arn:Partition:cloudwatch:Region:AccountId:alarm:{DEFAULT_CLUSTER}-HeadNode-Disk" in shown
    assert len(shown) == len(monitored().find_resources("AWS::CloudWatch::Alarm")) + len(LIBRARY_ALARMS)


def test_nodes_publish_what_is_shown() -> None:
    shown = {
        (name, *sorted(dimensions.items()))
        for namespace, name, dimensions in metrics_of(monitored(cpu_queue="on"))
        if namespace == "TrainingCluster"
    }
    modules = [path.stem for path in (ASSETS / "bootstrap" / "metrics").glob("*.py")]
    programs = asset_code("bootstrap/metrics", "head_node", *modules)
    states, accelerators = programs.head_node, programs.compute_node
    published = {
        (each.name, *sorted({"ClusterName": DEFAULT_CLUSTER, **each.dimensions}.items()))
        for each in states.metrics_of(
            [
                states.Node(p, False, "up", "idle", "idle", False, 1, "x", 0.0, "", "", "")
                for p in ("gpu", "cpu")
            ]
        )
    }
    alone = ("ClusterName", DEFAULT_CLUSTER)
    always = (accelerators.UTILIZATION, accelerators.MEMORY)
    published |= {(name, alone) for name in (*always, "BrakedChecks")}
    assert (shown, states.STATES, states.cloudwatch.NAMESPACE) == (published, NODE_STATES, "TrainingCluster")
