"""Flags with which a cluster has policies that others lack, for `trainctl plan` and `preflight`."""

from tests.unit.training_cluster.rules.test_rules import WORKSPACE
from training_cluster.cluster.resource_ids import PLACEHOLDERS, ResourceIds

_SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:webhook-AbCdEf"
_PROMETHEUS = {"metrics": "prometheus"}
POLICY_FLAGS: tuple[dict[str, str], ...] = (
    _PROMETHEUS,  # without anyone to tell, no policy
    _PROMETHEUS | {"alarm_email": "a@example.com"},
    _PROMETHEUS | {"alert_webhook_secret": _SECRET},
    {"metrics": "amp", "metrics_workspace": WORKSPACE},
    {"login_nodes": "1"},
    {"read_buckets": "my-data"},
    {"write_buckets": "my-data"},
)
NAMES = [getattr(PLACEHOLDERS, field) for field in ResourceIds.own_policies()]
"""ARNs of policies that exist nowhere."""


def placeholders_in(config: str) -> list[str]:
    """Return the placeholders of policies in a config."""
    return [each for each in NAMES if each in config]
