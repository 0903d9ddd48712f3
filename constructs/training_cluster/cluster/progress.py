"""The SSM parameter that holds the progress of a stack's cluster; `trainctl status` reads it."""

from __future__ import annotations


def progress_parameter(stack_name: str) -> str:
    """Name the SSM parameter: JSON, as assets/cluster_provider/record.py writes it.

    Args:
        stack_name: of our stack, not of the cluster: two stacks that want one cluster must not share notes.
    """
    return f"/training-cluster/stacks/{stack_name}/progress"
