"""All checks of `trainctl verify`; one that fails hides no other."""

from __future__ import annotations

from ops.account.clusters import describe_cluster
from ops.account.session import ClientOf
from ops.verify import deploy, head_node, resources
from ops.verify.check import Result

CHECKS = (*deploy.CHECKS, *head_node.CHECKS, *resources.CHECKS)
"""Every check, in the order of the report and of docs/first-deploy.md."""


def run_checks(cluster_name: str, client: ClientOf) -> list[Result]:
    """Run every check. Raises OpsError if there is no such cluster, and botocore's errors."""
    cluster = describe_cluster(cluster_name, client)
    return [check.run(cluster, client) for check in CHECKS]
