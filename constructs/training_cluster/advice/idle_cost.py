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
from training_cluster.cluster.fleet import GP3, Nodes, Volumes, compute_nodes, fleet, volumes_of
from training_cluster.cluster.nodes import Rendered, login_pools
from training_cluster.flags.settings import Settings
from training_cluster.overrides.storage import ManagedStorage, managed_storage

DAYS_PER_MONTH = 365 / 12

InstanceHour = Callable[[str], Price | None]
"""Price of an hour of an instance type; None when it is not known."""


def idle_cost(settings: Settings, config: Rendered) -> tuple[Charge, ...]:
    """Return everything that is billed by the hour, dearest first; not storage by the byte, nor traffic."""
    return dearest_first([*_compute_nodes(config), *permanent_charges(settings, config, instance_hour)])


def permanent_charges(settings: Settings, config: Rendered, hour_of: InstanceHour) -> Iterator[Charge]:
    """Yield what is billed as long as the cluster exists, whatever its compute nodes do."""
    prices, is_public = load_base().prices, settings.public_access == "on"
    yield _head_node(next(fleet(config)), hour_of, is_public=is_public)
    for pool in login_pools(config):
        yield from _login_nodes(pool, prices, hour_of, is_public=is_public)
    for storage in managed_storage(config):
        yield _managed(storage, prices)
    for part in (_network, _lustre, _efs, _accounting):
        yield from part(settings, prices)


def instances(
    count: int, roots: Volumes | None, hour: Price | None, *, what: str, public: bool = False
) -> Charge:
    """Return the cost of instances that always run, with disks and addresses; `hour` is the price of one."""
    prices = load_base().prices
    if hour is None:
        return Charge(what=what, usd_per_month=None, note=NO_PRICE)
    hours = (hour, prices.public_ipv4_hour) if public else (hour,)
    gib = roots.gib if roots and roots.type == GP3 else 0
    return Charge(
        what=what,
        usd_per_month=count * (by_hour(what, prices, *hours).usd + gib * prices.gp3_gb_month.usd),
        prices=(*hours, *((prices.gp3_gb_month,) if gib else ())),
        note=roots.more if roots else "",
    )


def _head_node(node: Nodes, hour_of: InstanceHour, *, is_public: bool) -> Charge:
    (type_,), roots = node.types, node.roots
    what = f"head node {type_}" + (f", {roots.gib} GiB" if roots else "")
    return instances(1, roots, hour_of(type_), public=is_public or node.has_address, what=what)


def _login_nodes(
    pool: Rendered, prices: Prices, hour_of: InstanceHour, *, is_public: bool
) -> Iterator[Charge]:
    # The AMI decides how large their disks are, which is not known here: some 3 USD each.
    count, type_ = pool.get("Count", 0), pool.get("InstanceType", "")
    name = pool.get("Name", "login")
    whose = "login nodes" if name == "login" else f"login nodes {name}"
    yield instances(count, None, hour_of(type_), public=is_public, what=f"{whose}, {count} x {type_}")
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
    volumes, gp3 = volumes_of(storage), prices.gp3_gb_month
    if storage.kind == "Ebs" and volumes.type == GP3 and "SnapshotId" not in given:
        gib = volumes.count * volumes.gib
        what = f"{what}, {gib} GiB"
        return Charge(what=what, usd_per_month=gib * gp3.usd, prices=(gp3,), note=volumes.more)
    return Charge(what=what, usd_per_month=None, note=NO_PRICE)


def _compute_nodes(config: Rendered) -> Iterator[Charge]:
    for each in dict.fromkeys(of.reservation for of in compute_nodes(config) if of.kind == "reservation"):
        yield Charge(what=f"the reservation {each}", usd_per_month=None, note="billed whether used or not")
    for nodes in compute_nodes(config):
        what = f"{nodes.least} x {nodes.types[0]}"
        if nodes.least and nodes.kind == "spot":
            yield Charge(what=what, usd_per_month=None, note="at the spot price")
        elif nodes.least and nodes.kind == "ondemand":
            hour = instance_hour(nodes.types[0])
            yield instances(
                nodes.least, nodes.roots, hour, public=nodes.has_address, what=f"{what} (min_nodes)"
            )


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
