"""Rules about metrics: what each store requires."""

import pytest

from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings

WORKSPACE = "arn:aws:aps:us-east-1:123456789012:workspace/ws-01234567-0123-4567-89ab-0123456789ab"
SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:webhook-AbCdEf"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"metrics": "prometheus", "os": "alinux2023"}, "no repository of Amazon Linux 2023"),
        ({"metrics": "amp"}, "metrics_workspace, which gets the metrics, is missing"),
        ({"metrics": "prometheus", "metrics_workspace": WORKSPACE}, "which sends nothing there"),
        ({"alert_webhook_secret": SECRET}, "whose alarms go only to alarm_email"),
        ({"metrics": "amp", "metrics_workspace": WORKSPACE.replace("aps", "eks")}, "metrics_workspace"),
        (
            {"metrics": "prometheus", "alert_webhook_secret": "https://hooks.example.com/x"},
            "alert_webhook_secret",
        ),
    ],
)
def test_a_store_without_what_it_needs_is_refused(flags: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        read_settings(flags)


@pytest.mark.parametrize(
    "flags",
    [
        {"metrics": "prometheus"},
        {"metrics": "prometheus", "os": "ubuntu2404", "alert_webhook_secret": SECRET},
        {"metrics": "amp", "metrics_workspace": WORKSPACE},
    ],
)
def test_a_store_with_what_it_needs_is_taken(flags: dict[str, str]) -> None:
    assert read_settings(flags).metrics == flags["metrics"]
