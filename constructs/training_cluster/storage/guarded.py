"""Guarded values of StorageStack: those that cannot change while its resources hold data, and the way round.

Sources: createOnlyProperties of the registry's schemas (a test of the guard proves that all are here),
FSx's UpdateFileSystem (API reference: its parameters can change in place), and FSx's guide.
"""

from training_cluster.flags.storage import StorageFlags
from training_cluster.functions.guarded import Guarded, if_given
from training_cluster.network.guarded import MOVE

# All clusters use StorageStack's exports. Destroying them releases the exports; the data is retained.
_DESTROY_CLUSTERS = "type what trainctl destroy --plan prints for the clusters"
_MOVE_LUSTRE = (
    "To move: make the new file system in the subnet and security group of the old one (aws "
    "fsx create-file-system), copy, link its /datasets and /checkpoints to the bucket (aws fsx "
    f"create-data-repository-association; no deploy links what is given), {_DESTROY_CLUSTERS}, then deploy "
    "with -c fsx_id=fs-NEW. The old one stays until you delete it."
)
_NEW_STACK = (
    f"{_DESTROY_CLUSTERS} and for StorageStack (all data stays), then deploy with -c bucket_name=BUCKET -c "
    "fsx_id=LUSTRE -c efs_id=EFS."
)


def guarded_storage(
    flags: StorageFlags, *, vpc_id: str, subnet_id: str, node_security_group_id: str
) -> dict[str, Guarded]:
    """Return the guard's values, by flag. A resource's values are left out when its id is given.

    Args:
        vpc_id, subnet_id, node_security_group_id: ids of the file systems' network; may be tokens.
    """
    values = {
        "bucket_name": _bucket(flags),
        "fsx_id": _adopted("fsx_id", flags.fsx_id),
        "efs_id": _adopted("efs_id", flags.efs_id),
    }
    if not flags.fsx_id:
        values |= _lustre(flags)
    if not flags.efs_id:
        # EFS refuses a second such change within a day, so a rollback could not take it back.
        throughput = Guarded(value=str(flags.efs_mibps or ""), policy="alone", note="once a day")
        values["efs_mibps"] = if_given("efs_mibps", flags, throughput)
    if not (flags.fsx_id and flags.efs_id):
        network = {
            "vpc_id": vpc_id,
            "private_subnet_id": subnet_id,
            # The file systems' clients are in this group, and a cluster's nodes never leave it.
            "security_group_id": node_security_group_id,
        }
        values |= {name: Guarded(value=id_, policy="never", safe_way=MOVE) for name, id_ in network.items()}
    return values


def _adopted(flag: str, id_: str | None) -> Guarded:
    return Guarded(
        value=id_ or "",
        policy="adopts",
        note="this app's own one stays, and is no longer used",
        safe_way=f"Type -c {flag}={{old}}, at every deploy. To use another: {_NEW_STACK}",
    )


def _bucket(flags: StorageFlags) -> Guarded:
    if flags.fsx_id:
        return _adopted("bucket_name", flags.bucket_name)
    # Another bucket replaces the associations, and FSx refuses a second one for the same folder.
    return Guarded(
        value=flags.bucket_name or "",
        policy="never",
        safe_way="The file system is linked to the bucket: leave bucket_name as it was. To move: make "
        "another file system with its subnet and security group (aws fsx create-file-system), link it to the "
        f"new bucket (aws fsx create-data-repository-association), copy, {_DESTROY_CLUSTERS}, then deploy "
        "with -c fsx_id=fs-NEW -c bucket_name={new}.",
    )


def _lustre(flags: StorageFlags) -> dict[str, Guarded]:
    values = {
        "fsx_type": Guarded(
            value=flags.fsx_type, policy="never", safe_way=f"Keep -c fsx_type={{old}}. {_MOVE_LUSTRE}"
        ),
        "fsx_gib": Guarded(
            value=str(flags.fsx_gib),
            policy="grows",
            note="file operations may pause for minutes, and are slower for hours",
            safe_way=f"FSx makes no file system smaller: keep -c fsx_gib={{old}}, or more. {_MOVE_LUSTRE}",
        ),
        "fsx_efa": Guarded(
            value=flags.fsx_efa,
            policy="never",
            safe_way=f"EFA is chosen when a file system is made: keep -c fsx_efa={{old}}. {_MOVE_LUSTRE}",
        ),
    }
    if flags.fsx_type == "persistent2":
        name = "fsx_mbps_per_tib"
        # FSx changes the throughput of such a file system in place, but not with EFA (guide, "Managing
        # provisioned throughput capacity").
        throughput = Guarded(
            value=flags.fsx_mbps_per_tib,
            policy="never" if flags.fsx_efa == "on" else "changes",
            note="file operations may pause for minutes",
            safe_way="With EFA it is chosen when a file system is made: keep -c fsx_mbps_per_tib={old}; a "
            f"larger -c fsx_gib brings more throughput. {_MOVE_LUSTRE}",
        )
        may_change = throughput.policy == "changes"
        values[name] = if_given(name, flags, throughput) if may_change else throughput
    return values
