"""Alerts of a cluster with a Prometheus, in the words of its rules."""

import yaml

from training_cluster.paths import ASSETS

RULES = ASSETS / "bootstrap" / "monitoring" / "rules.yml"


def alert_names() -> list[str]:
    """Return the names of the alerts that metrics=prometheus and amp report, and cloudwatch does not."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule]
