"""Name of the SSM parameter with the progress of a stack's cluster; `trainctl status` reads it."""


def progress_parameter(stack_name: str) -> str:
    """Name the SSM parameter, which assets/cluster_provider/record.py writes as JSON.

    Args:
        stack_name: name of our stack: two stacks with the same cluster name must not share a record.
    """
    return f"/training-cluster/stacks/{stack_name}/progress"
