"""Your own key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ops.preflight.finding import Finding, judged
from training_cluster.settings import Settings


def check_access(settings: Settings, ec2: Any) -> Iterator[Finding]:
    """What is given by name."""
    if settings.key_name:
        yield _key(settings.key_name, settings, ec2)


def _key(name: str, settings: Settings, ec2: Any) -> Finding:
    found = ec2.describe_key_pairs(Filters=[{"Name": "key-name", "Values": [name]}])["KeyPairs"]
    kind = found[0].get("KeyType", "rsa") if found else None
    # ParallelCluster's KeyPairValidator: Ubuntu takes no RSA key.
    is_refused = kind is None or settings.system.startswith("ubuntu")
    return judged(
        f"key_name {name}",
        kind or "not there",
        good=kind == "ed25519",
        else_="problem" if is_refused else "warning",
        mend="aws ec2 create-key-pair --key-type ed25519 --key-name NAME, then -c key_name=NAME",
    )
