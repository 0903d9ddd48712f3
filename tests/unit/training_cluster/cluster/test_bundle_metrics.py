"""Changes that a metrics store makes: the bundle's settings, and the head node's time."""

from tests.unit.training_cluster.rules.test_rules import WORKSPACE
from training_cluster.cluster.bundle import bootstrap_budget_s, render_metrics, render_prices
from training_cluster.rules.context import read_settings

AMP = {"metrics": "amp", "metrics_workspace": WORKSPACE}


def test_the_bundle_has_the_settings_of_the_steps() -> None:
    lines = render_metrics(read_settings({**AMP, "alarm_email": "me@example.com", "budget_usd": "500"}))
    assert lines.splitlines() == [
        "export METRICS='amp'",
        "export METRICS_WORKSPACE='https://aps-workspaces.us-east-1.amazonaws.com/workspaces/"
        "ws-01234567-0123-4567-89ab-0123456789ab'",
        "export METRICS_TOPIC='TrainingCluster_training_Alarms'",
        "export METRICS_WEBHOOK_SECRET=''",
        "export METRICS_BUDGET_USD='500'",
    ]


def test_every_compute_resource_has_a_price() -> None:
    lines = render_prices(read_settings({"family": "p4d", "cpu_queue": "on"})).splitlines()
    words = [line.split() for line in lines]
    assert [line[:2] for line in words] == [["head", "-"], ["gpu", "p4d"], ["cpu", "m6i-16xlarge"]]
    assert all(float(usd) > 0 for *_, usd in words)


def test_prometheus_is_paid_in_time_only_when_asked() -> None:
    default, prometheus = read_settings({}), read_settings({"metrics": "prometheus"})
    assert bootstrap_budget_s(prometheus) == bootstrap_budget_s(default) + 60
    assert not default.head_node_sends and not prometheus.head_node_sends, "its alerts go nowhere"
    assert read_settings({"metrics": "prometheus", "alarm_email": "me@example.com"}).head_node_sends
