"""Finds the flags with which a new cluster uses resources of deleted stacks."""

from collections.abc import Iterator, Mapping

from ops.account.deploy_command import deploy_command
from ops.account.stacks import Stack
from ops.teardown.remaining import Remaining
from training_cluster.stack_names import ACCOUNTING_STACK, NETWORK_STACK, STORAGE_STACK


def adopt(remaining: Remaining, stacks: Mapping[str, Stack], cluster_name: str) -> Iterator[str]:
    """Yield the lines for a terminal; none while the stacks exist."""
    flags = _flags(remaining, stacks)
    given = [f"{flag}={values[0]}" for flag, values in flags.items() if len(values) == 1]
    if flags:
        yield ""
        yield "Deleted stacks left data. To use it again, after trainctl preflight with the same flags:"
        yield f"  {deploy_command(cluster_name, *given)}"
        for flag, values in flags.items():
            if len(values) > 1:
                yield f"  and with one of {len(values)} values of {flag}:"
                yield from (f"    -c {flag}={value}" for value in values)
    kept = [*(each.id for each in remaining.lustre), *(each.id for each in remaining.efs)]
    if NETWORK_STACK in stacks and STORAGE_STACK not in stacks and kept:
        yield ""
        yield "Do not destroy NetworkStack as long as these file systems remain in it: it would lose its"
        yield f"NAT gateway and its routes, and end in DELETE_FAILED. {', '.join(kept)}"


def _flags(remaining: Remaining, stacks: Mapping[str, Stack]) -> dict[str, list[str]]:
    """Return the possible values by flag."""
    found: dict[str, list[str]] = {}
    if STORAGE_STACK not in stacks:
        found |= {
            "bucket_name": list(remaining.buckets),
            "fsx_id": [system.id for system in remaining.lustre],
            "efs_id": [system.id for system in remaining.efs],
        }
    if ACCOUNTING_STACK not in stacks:
        secrets = [
            each.physical_id for each in remaining.accounting if each.type == "AWS::SecretsManager::Secret"
        ]
        found |= {
            "accounting": list(remaining.databases),
            "accounting_secret": secrets if remaining.databases else [],
        }
    return {flag: values for flag, values in found.items() if values}
