"""What a metrics store changes: the head node's rights, the bundle's settings, and nothing by default."""

from tests.unit.training_cluster.rules.test_monitoring import WORKSPACE
from training_cluster.cluster.bundle import bootstrap_budget_s
from training_cluster.cluster.config import render_cluster_config
from training_cluster.cluster.metrics import render_metrics, render_prices
from training_cluster.cluster.resource_ids import placeholders
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


def test_every_compute_resource_and_the_head_node_have_a_price() -> None:
    lines = [
        line.split()
        for line in render_prices(read_settings({"family": "p4d", "cpu_queue": "on"})).splitlines()
    ]
    assert [line[:2] for line in lines] == [["head", "-"], ["gpu", "p4d"], ["cpu", "m6i-16xlarge"]]
    assert all(float(usd) > 0 for _, _, usd in lines)


def test_by_default_nothing_is_paid_in_time_or_rights() -> None:
    default, prometheus = read_settings({}), read_settings({"metrics": "prometheus"})
    mails = read_settings({"metrics": "prometheus", "alarm_email": "me@example.com"})
    assert bootstrap_budget_s(prometheus) == bootstrap_budget_s(default) + 60
    ids = placeholders(image_id=None, bootstrap_budget_s=600)
    policies = {
        name: render_cluster_config(settings=settings, ids=ids)["HeadNode"]["Iam"]["AdditionalIamPolicies"]
        for name, settings in {"default": default, "prometheus": prometheus, "mails": mails}.items()
    }
    assert policies["prometheus"] == policies["default"], "its alerts go nowhere"
    assert len(policies["mails"]) == len(policies["default"]) + 1
