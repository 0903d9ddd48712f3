"""Guarded values of NetworkStack: those that cannot change while the network is in use, and the way round."""

from training_cluster.flags.network import NetworkFlags
from training_cluster.functions.guarded import Guarded

_SAFE_WAY = (
    "Clusters and file systems are in this network: leave the flag as it was, {old}. To move: "
    'docs/how-to/operate.md, "Take it down", up to NetworkStack, which deletes no data; then deploy with the '
    "other network."
)


def guarded_network(flags: NetworkFlags) -> dict[str, Guarded]:
    """Return the guard's values by flag; "" where the app creates the resource. zone.py guards the zone."""
    given = {
        "vpc_id": flags.vpc_id,
        "public_subnet_id": flags.public_subnet_id,
        "private_subnet_id": flags.private_subnet_id,
        "security_group_id": flags.security_group_id,
    }
    return {name: Guarded(value=id_ or "", policy="never", safe_way=_SAFE_WAY) for name, id_ in given.items()}
