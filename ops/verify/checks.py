"""All checks of `trainctl verify`; one that fails hides no other."""

from ops.verify import deploy, head_node, links, monitoring, resources, slurm
from ops.verify.check import Result
from ops.verify.scene import Scene

CHECKS = (
    *deploy.CHECKS,
    *head_node.CHECKS,
    *slurm.CHECKS,
    *resources.CHECKS,
    *links.CHECKS,
    *monitoring.CHECKS,
)
"""Every check that starts no node, in the order of the report and of docs/first-deploy.md."""


def run_checks(scene: Scene) -> list[Result]:
    """Run every check that starts no node."""
    return [check.run(scene) for check in CHECKS]
