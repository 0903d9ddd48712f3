"""How a new cluster takes up what deleted stacks left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ops.account.stacks import Stack
from ops.teardown.remaining import Remaining
from training_cluster.stack_names import ACCOUNTING_STACK, NETWORK_STACK, STORAGE_STACK


def adopt(remaining: Remaining, stacks: Mapping[str, Stack]) -> Iterator[str]:
    """Lines for a terminal; none while the stacks are there."""
    flags = _flags(remaining, stacks)
    given = " ".join(f"-c {flag}={values[0]}" for flag, values in flags.items() if len(values) == 1)
    if flags:
        yield ""
        yield "Deleted stacks left data. To take it up again, after trainctl preflight with the same flags:"
        yield f"  npx cdk deploy TrainingClusterStack {given}".rstrip()
        for flag, values in flags.items():
            if len(values) > 1:
                yield f"  and one {flag} more; there are {len(values)}, and one must be chosen:"
                yield from (f"    -c {flag}={value}" for value in values)
    kept = [*(each.id for each in remaining.lustre), *(each.id for each in remaining.efs)]
    if NETWORK_STACK in stacks and STORAGE_STACK not in stacks and kept:
        yield ""
        yield "Do not destroy NetworkStack while these file systems stand in it and are kept: it would"
        yield f"lose its NAT gateway and its routes, and end in DELETE_FAILED. {', '.join(kept)}"


def _flags(remaining: Remaining, stacks: Mapping[str, Stack]) -> dict[str, list[str]]:
    """Flag -> what fits."""
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
