"""The dashboard: what it shows, whether it fits, and whether anything publishes what it shows."""

import importlib.util
import itertools
import re
import sys
from collections.abc import Callable
from types import ModuleType

import pytest
import yaml
from aws_cdk.assertions import Template

from tests.unit.training_cluster.monitoring.monitored import (
    EMAIL,
    GOLDEN,
    HEAD_NODE,
    LIBRARY,
    LUSTRE,
    metrics_of,
    monitored,
    series,
    text,
    widget,
    widgets,
)
from training_cluster.monitoring.dashboard import LIBRARY_ALARMS
from training_cluster.monitoring.metrics import LAUNCH_FAILURES, NODE_STATES
from training_cluster.paths import ASSETS

Synthesise = Callable[..., dict[str, Template]]

VARIANTS: list[dict[str, str]] = [
    {},
    {"family": "m6i"},
    {"family": "trn1", "cpu_queue": "on"},
    {"alarm_email": EMAIL, "budget_usd": "5000"},
]


@pytest.mark.parametrize("flags", VARIANTS, ids=str)
def test_every_widget_has_a_title_and_something_to_show(flags: dict[str, str]) -> None:
    for each in widgets(monitored(**flags)):
        properties = each["properties"]
        if each["type"] == "text":
            assert properties["markdown"].startswith("# ")
        else:
            assert properties["title"]
            assert properties.get("metrics") or properties.get("alarms")


@pytest.mark.parametrize("flags", VARIANTS, ids=str)
def test_every_row_fills_24_columns_and_no_widget_covers_another(flags: dict[str, str]) -> None:
    found = widgets(monitored(**flags))
    rows = {w["y"]: [other for other in found if other["y"] == w["y"]] for w in found}
    for row in rows.values():
        assert sum(w["width"] for w in row) == 24
        assert len({w["height"] for w in row}) == 1
    for one, other in itertools.combinations(found, 2):
        beside = one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
        below = one["y"] + one["height"] <= other["y"] or other["y"] + other["height"] <= one["y"]
        assert beside or below, (one["properties"], other["properties"])


def test_the_dashboard_names_cluster_and_region_and_is_not_parallelclusters(synthesise: Synthesise) -> None:
    (dashboard,) = monitored(cluster_name="b").find_resources("AWS::CloudWatch::Dashboard").values()
    name = text(dashboard["Properties"]["DashboardName"])
    assert name == "TrainingCluster_b_Region"
    # A cluster whose own dashboard would have this name cannot be.
    source = (LIBRARY / "templates" / "cw_dashboard_builder.py").read_text()
    assert 'self.dashboard_name = self.stack_name + "-" + self._stack_region' in source
    assert "_" in name.removesuffix("Region")
    output = synthesise()["TrainingClusterStack"].find_outputs("Dashboard")["Dashboard"]["Value"]
    assert text(output) == "TrainingCluster_training_Region"


@pytest.mark.parametrize("flags", VARIANTS, ids=str)
def test_the_text_says_where_the_logs_are_and_how_many_metrics_are_paid(flags: dict[str, str]) -> None:
    template = monitored(**flags)
    (guide,) = (w["properties"]["markdown"] for w in widgets(template) if w["type"] == "text")
    assert "`/aws/parallelcluster/training-`" in guide
    own = {
        (name, *sorted(dimensions.items()))
        for namespace, name, dimensions in metrics_of(template)
        if namespace == "TrainingCluster"
    }
    # It is published, and paid, only while there is one.
    paid = [name for name, *_ in own if name != "BrakedChecks"]
    assert f"has {len(paid)} metrics, however many nodes run" in guide


@pytest.mark.parametrize("flags", VARIANTS, ids=str)
def test_all_that_is_shown_of_parallelcluster_is_what_it_publishes(flags: dict[str, str]) -> None:
    templates = LIBRARY / "templates"
    source = (templates / "cw_dashboard_builder.py").read_text()
    filters = set(re.findall(r'metric_name="(\w+)",\s*filter_pattern', source))
    assert len(filters) > 10
    constants = (LIBRARY / "constants.py").read_text()
    heartbeat = re.search(r'CW_METRICS_CLUSTERMGTD_HEARTBEAT = "(\w+)"', constants)
    assert heartbeat
    assert 'custom_namespace = "ParallelCluster"' in source
    assert 'CW_METRICS_NAMESPACE = "ParallelCluster"' in constants
    agents = set(re.findall(r'metrics=\["(\w+_used_percent)"\]', source))
    for namespace, name, dimensions in metrics_of(monitored(**flags)):
        if namespace == "ParallelCluster" and name == heartbeat[1]:
            assert dimensions == {"ClusterName": "training", "InstanceId": HEAD_NODE}
        elif namespace == "ParallelCluster":
            assert name in filters
            assert dimensions == {"ClusterName": "training"}
        elif namespace == "CWAgent":
            assert name in agents
            path = {"path": "/"} if name == "disk_used_percent" else {}
            assert dimensions == {"InstanceId": HEAD_NODE, **path}
        else:
            assert namespace in {"AWS/EC2", "AWS/FSx", "AWS/Billing", "TrainingCluster"}


def test_what_makes_the_library_publish_is_in_every_config_that_we_render() -> None:
    """Filters of custom actions exist if a queue has some; none at all without logs in CloudWatch."""
    source = (LIBRARY / "templates" / "cw_dashboard_builder.py").read_text()
    conditional = source.partition("if self.config.has_custom_actions_in_queue")[2].partition(
        "cluster_health_metrics."
    )[0]
    used = {name for name in LAUNCH_FAILURES if f'"{name}"' in conditional}
    assert used == {"OnNodeConfiguredDownloadErrors", "OnNodeConfiguredRunErrors"}
    assert GOLDEN
    for path in GOLDEN:
        config = yaml.safe_load(path.read_text())
        assert config["Monitoring"]["Logs"]["CloudWatch"]["Enabled"] is True
        assert "Dashboards" not in config["Monitoring"], "its dashboard is what makes its filters"
        assert "Alarms" not in config["Monitoring"]
        assert all("OnNodeConfigured" in q["CustomActions"] for q in config["Scheduling"]["SlurmQueues"])


def test_all_of_the_librarys_causes_of_a_launch_failure_are_counted() -> None:
    source = (LIBRARY / "templates" / "cw_dashboard_builder.py").read_text()
    launch = source.partition("jobs_not_starting_errors = [")[2].partition("]\n")[0]
    assert set(re.findall(r'metric_name="(\w+)"', launch)) <= set(LAUNCH_FAILURES)


def test_alarms_of_the_library_that_are_shown_have_its_names() -> None:
    source = (LIBRARY / "templates" / "cluster_stack.py").read_text()
    assert 'alarm_name = f"{self.stack.stack_name}-HeadNode-{metric_key}"' in source
    for name in LIBRARY_ALARMS:
        assert f'"{name}": {{' in source
    shown = widget(monitored(), "Alarms")["alarms"]
    assert "arn:Partition:cloudwatch:Region:AccountId:alarm:training-HeadNode-Disk" in shown


def _node_program(name: str) -> ModuleType:
    """Import a program of the nodes; it has its neighbours on the path."""
    folder = ASSETS / "bootstrap" / "metrics"
    sys.path.insert(0, str(folder))
    try:
        specification = importlib.util.spec_from_file_location(f"node_{name}", folder / f"{name}.py")
        assert specification and specification.loader
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
        for path in folder.glob("*.py"):
            sys.modules.pop(path.stem, None)
    return module


def test_what_is_shown_of_nodes_is_what_they_publish() -> None:
    shown = {
        (name, *sorted(dimensions.items()))
        for namespace, name, dimensions in metrics_of(monitored(cpu_queue="on"))
        if namespace == "TrainingCluster"
    }
    states, accelerators = _node_program("head_node"), _node_program("compute_node")
    published = {
        (each.name, *sorted({"ClusterName": "training", **each.dimensions}.items()))
        for each in states.metrics_of(
            [states.Node(partition, "x", "idle", "10.0.0.1", None, "none") for partition in ("gpu", "cpu")]
        )
    }
    alone = ("ClusterName", "training")
    always = (accelerators.UTILIZATION, accelerators.MEMORY)
    published |= {(name, alone) for name in (*always, "BrakedChecks")}
    assert shown == published
    assert states.STATES == NODE_STATES
    assert states.cloudwatch.NAMESPACE == "TrainingCluster"


def test_there_is_a_graph_of_each_partitions_nodes() -> None:
    template = monitored(cpu_queue="on")
    for partition in ("gpu", "cpu"):
        found = list(series(widget(template, f"partition {partition},")))
        assert [dimensions["State"] for _, _, dimensions, _ in found] == list(NODE_STATES)
        assert {dimensions["Partition"] for _, _, dimensions, _ in found} == {partition}


def test_accelerators_are_shown_where_nodes_have_some() -> None:
    for name, metric in {"utilisation": "Utilization", "memory in use": "MemoryUsed"}.items():
        found = list(series(widget(monitored(family="trn1"), f"AWS Trainium: {name}")))
        assert {options.get("stat", "Average") for *_, options in found} == {"Average", "Minimum", "Maximum"}
        assert {shown for _, shown, *_ in found} == {f"Accelerator{metric}"}
    assert "utilisation" not in str(widgets(monitored(family="m6i")))


def test_lustre_throughput_is_bytes_a_second_and_free_space_a_share() -> None:
    throughput = widget(monitored(), "Lustre throughput")
    expressions = [e[-1]["expression"] for e in throughput["metrics"] if "expression" in e[-1]]
    assert expressions == ["read / PERIOD(read) / 1000000", "written / PERIOD(written) / 1000000"]
    assert {(name, o["id"], o["stat"]) for _, name, _, o in series(throughput)} == {
        ("DataReadBytes", "read", "Sum"),
        ("DataWriteBytes", "written", "Sum"),
    }
    free = widget(monitored(), "Lustre: free space")
    assert free["metrics"][0][-1]["expression"] == "100 * free / (free + used)"
    for properties in (throughput, free):
        assert all(dimensions == {"FileSystemId": LUSTRE} for _, _, dimensions, _ in series(properties))


def test_the_accounts_spend_is_shown_as_what_it_is_with_the_budget_as_a_line() -> None:
    spend = widget(monitored(budget_usd="5000", alarm_email=EMAIL), "the whole account")
    assert spend["region"] == "us-east-1"
    assert "us-east-1" in spend["title"]
    ((namespace, name, dimensions, options),) = series(spend)
    assert (namespace, name, dimensions) == ("AWS/Billing", "EstimatedCharges", {"Currency": "USD"})
    assert options["stat"] == "Maximum"
    (line,) = spend["annotations"]["horizontal"]
    assert line["value"] == 5000
    assert "annotations" not in widget(monitored(), "the whole account")


def test_the_dashboard_shows_every_alarm() -> None:
    template = monitored()
    shown = widget(template, "Alarms")["alarms"]
    assert len(shown) == len(template.find_resources("AWS::CloudWatch::Alarm")) + len(LIBRARY_ALARMS)
