"""Cost of a deploy while no job runs: shown before it is made, since nobody looks for it afterwards."""

from collections.abc import Callable, Iterator, Sequence

from training_cluster.catalog.charges import (
    NO_PRICE,
    Charge,
    aurora,
    by_hour,
    dearest_first,
    efs,
    interface_endpoints,
    lustre,
    nat_gateway,
    render_charges,
)
from training_cluster.catalog.families import instance_hour, load_base
from training_cluster.catalog.prices import Price, Prices
from training_cluster.cluster.nodes import Rendered, login_pools
from training_cluster.flags.settings import Settings
from training_cluster.overrides.storage import ManagedStorage, managed_storage
from training_cluster.queues.queue import Queue

_EBS_GIB = 40
"""ParallelCluster's EBS_VOLUME_SIZE_DEFAULT (pcluster/constants.py, 3.16.1)."""
DAYS_PER_MONTH = 365 / 12

InstanceHour = Callable[[str], Price | None]
"""Price of an hour of an instance type; None when it is not known."""


def idle_cost(settings: Settings, config: Rendered) -> tuple[Charge, ...]:
    """Return everything that is billed by the hour, dearest first; not storage by the byte, nor traffic."""
    nodes = [charge for queue in settings.all_queues for charge in _nodes_of(queue)]
    return dearest_first([*nodes, *permanent_charges(settings, config, instance_hour)])


def permanent_charges(settings: Settings, config: Rendered, hour_of: InstanceHour) -> Iterator[Charge]:
    """Yield what is billed as long as the cluster exists, whatever its compute nodes do."""
    prices = load_base().prices
    yield from _head_node(settings, hour_of)
    for pool in login_pools(config):
        yield from _login_nodes(pool, prices, hour_of, is_public=settings.public_access == "on")
    for storage in managed_storage(config):
        yield _managed(storage, prices)
    for part in (_network, _lustre, _efs, _accounting):
        yield from part(settings, prices)


def instances(count: int, root_gib: int, hour: Price | None, *, what: str, public: bool = False) -> Charge:
    """Return the cost of instances that always run, with disks and addresses; `hour` is the price of one."""
    prices = load_base().prices
    if hour is None:
        return Charge(what=what, usd_per_month=None, note=NO_PRICE)
    hours = (hour, prices.public_ipv4_hour) if public else (hour,)
    disks = root_gib * prices.gp3_gb_month.usd
    return Charge(
        what=what,
        usd_per_month=count * (by_hour(what, prices, *hours).usd + disks),
        prices=(*hours, *((prices.gp3_gb_month,) if root_gib else ())),
    )


def _head_node(settings: Settings, hour_of: InstanceHour) -> Iterator[Charge]:
    root_gib, type_ = settings.head_root_gib or settings.family_facts.head_root_gib, settings.head_type
    what = f"head node {type_}, {root_gib} GiB"
    is_public = settings.public_access == "on"
    yield instances(1, root_gib, hour_of(type_), public=is_public, what=what)


def _login_nodes(
    pool: Rendered, prices: Prices, hour_of: InstanceHour, *, is_public: bool
) -> Iterator[Charge]:
    # The AMI decides how large their disks are, which is not known here: some 3 USD each.
    count, type_ = pool.get("Count", 0), pool.get("InstanceType", "")
    name = pool.get("Name", "login")
    whose = "login nodes" if name == "login" else f"login nodes {name}"
    yield instances(count, 0, hour_of(type_), public=is_public, what=f"{whose}, {count} x {type_}")
    address = (prices.public_ipv4_hour,) if is_public else ()
    yield by_hour(f"load balancer of the {whose}", prices, prices.load_balancer_hour, *address)


def _managed(storage: ManagedStorage, prices: Prices) -> Charge:
    """Return the charge of storage that ParallelCluster makes, with its defaults (3.16.1)."""
    given, what = storage.settings, f"{storage.kind} at {storage.mount_dir}"
    if storage.kind == "Efs":
        return efs(what, prices, mibps=given.get("ProvisionedThroughput") or 0)
    if storage.kind == "FsxLustre" and "StorageCapacity" in given and given.get("StorageType") != "HDD":
        type_, speed = given.get("DeploymentType", "SCRATCH_2"), given.get("PerUnitStorageThroughput")
        return lustre(what, prices, type_, gib=given["StorageCapacity"], mbps_per_tib=speed)
    raid = given.get("Raid") or {}
    gib = given.get("Size", _EBS_GIB) * (raid.get("NumberOfVolumes", 2) if raid else 1)
    if storage.kind == "Ebs" and given.get("VolumeType", "gp3") == "gp3" and "SnapshotId" not in given:
        gp3 = prices.gp3_gb_month
        return Charge(what=f"{what}, {gib} GiB", usd_per_month=gib * gp3.usd, prices=(gp3,))
    return Charge(what=what, usd_per_month=None, note=NO_PRICE)


def _nodes_of(queue: Queue) -> Iterator[Charge]:
    for reserved in queue.reservations if queue.capacity_type != "capacity-block" else ():
        what, why = f"the reservation {reserved}", "billed whether used or not"
        yield Charge(what=what, usd_per_month=None, note=why)
    for resource in queue.compute_resources:
        count, type_, kind = resource.min_count, resource.types[0].name, queue.capacity_of(resource)
        if count and kind == "spot":
            yield Charge(what=f"{count} x {type_}", usd_per_month=None, note="at the spot price")
        elif count and kind == "ondemand":
            what = f"{count} x {type_} (min_nodes)"
            yield instances(count, queue.root_gib, instance_hour(type_), what=what)


def _network(settings: Settings, prices: Prices) -> Iterator[Charge]:
    if settings.vpc_id:
        return
    yield nat_gateway(prices)
    if services := settings.interface_endpoints:
        yield interface_endpoints(prices, len(services))


def _lustre(settings: Settings, prices: Prices) -> Iterator[Charge]:
    if settings.fsx_id:
        return
    durable, gib = settings.fsx_type == "persistent2", settings.fsx_gib
    type_ = "PERSISTENT_2" if durable else "SCRATCH_2"
    speed = f" at {settings.fsx_mbps_per_tib} MB/s a TiB" if durable else ", scratch2"
    what = f"FSx for Lustre, {gib} GiB{speed}"
    yield lustre(what, prices, type_, gib=gib, mbps_per_tib=settings.fsx_mbps_per_tib)


def _efs(settings: Settings, prices: Prices) -> Iterator[Charge]:
    if settings.efs_mibps and not settings.efs_id:
        yield efs(f"EFS at {settings.efs_mibps} MiB/s", prices, mibps=settings.efs_mibps)


def _accounting(settings: Settings, prices: Prices) -> Iterator[Charge]:
    if settings.accounting == "new":
        least = load_base().accounting_database.min_acu
        yield aurora(f"accounting database, {least:g} ACU", prices, least)


def render_idle_cost(charges: Sequence[Charge]) -> str:
    """Render the total, its parts, and the age and the certainty of the prices."""
    prices, month = load_base().prices, sum(each.usd for each in charges)
    known = [each for each in charges if each.usd_per_month is not None]
    unknown = [f"{each.what} ({each.note})" for each in charges if each not in known]
    without = f", without {' and '.join(unknown)}" if unknown else ""
    lines = [
        f"While no job runs this costs about {month:,.0f} USD a month, {month / DAYS_PER_MONTH:,.0f} a "
        f"day{without}:",
        *render_charges(known),
        f"On top comes what is stored and moved: a GB costs {prices.s3_gb_month.usd:.3f} a month in S3, "
        f"{prices.efs_gb_month.usd:.2f} in EFS, {prices.nat_gateway_gb.usd:.3f} through a NAT gateway.",
    ]
    if dates := [price.date for each in charges for price in each.prices]:
        lines.append(f"List prices of {prices.region}, {min(dates)} to {max(dates)}; your region may differ.")
    return "\n".join(lines)
