"""Which values of NetworkStack can never change while something stands in the network, and the way round."""

from __future__ import annotations

from training_cluster.flags.network import NetworkFlags
from training_cluster.functions.guard import Kept

_SAFE_WAY = (
    "Clusters and file systems stand in the network: leave the flag as it was, {old}. To move: README, "
    '"Take it down", up to NetworkStack, which deletes no data; then deploy with the other network.'
)


def kept_network(flags: NetworkFlags) -> dict[str, Kept]:
    """The guard's values, by flag; "" for what we make. The zone keeps itself (zone.py)."""
    given = {
        "vpc_id": flags.vpc_id,
        "public_subnet_id": flags.public_subnet_id,
        "private_subnet_id": flags.private_subnet_id,
        "security_group_id": flags.security_group_id,
    }
    return {name: Kept(value=id_ or "", may="never", safe_way=_SAFE_WAY) for name, id_ in given.items()}
