"""Guarded values of NetworkStack: those that cannot change while it is in use, and the way round."""

from training_cluster.flags.settings import Settings
from training_cluster.functions.guarded import Guarded, if_given

MOVE = (
    "Clusters and file systems are in {old}: leave the network flags as they were. To move, with the data in "
    "the bucket: type what trainctl destroy --plan prints up to NetworkStack, but not for the bucket "
    '(docs/how-to/operate.md, "Move to another network"), then deploy with the new flags and -c '
    "bucket_name=BUCKET."
)
_BOUNDARY = (
    "Clusters keep their boundary for life, and the shared stacks have the same: type -c "
    "permissions_boundary={old} at every deploy, or leave it out if that is (own). To change it: type what "
    "trainctl destroy --plan prints for the clusters (network and storage stay), then deploy. A cluster with "
    "another boundary: add --exclusively to npx cdk deploy, which leaves the shared stacks as they are."
)


def guarded_network(settings: Settings) -> dict[str, Guarded]:
    """Return the guard's values by flag; "" where the app creates the resource. zone.py guards the zone."""
    names = ("vpc_id", "public_subnet_id", "private_subnet_id", "security_group_id")
    values = {
        name: Guarded(value=getattr(settings, name) or "", policy="never", safe_way=MOVE) for name in names
    }
    boundary = settings.permissions_boundary or ""
    values["permissions_boundary"] = Guarded(value=boundary, policy="without clusters", safe_way=_BOUNDARY)
    open_to = {"ssh_from": settings.ssh_from or "", "endpoints": settings.endpoints}
    return values | {
        name: if_given(name, settings, Guarded(value=value, policy="changes"))
        for name, value in open_to.items()
    }
