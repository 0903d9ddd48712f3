"""Checks of a capacity reservation, Capacity Block or group of them: state, instance type, zone and size."""

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ops.account.session import ClientOf
from ops.asset_code import asset_code
from ops.preflight.existing_network import ExistingNetwork
from ops.preflight.finding import Finding, finding
from training_cluster.cluster.fleet import compute_nodes
from training_cluster.cluster.resource_ids import network_subnets
from training_cluster.flags.settings import Settings
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.queues.file import read_queues

Reservation = Mapping[str, Any]
"""Reservation as EC2 describes it."""
_BLOCK = "capacity-block"
_WAITS = ("scheduled", "pending", "payment-pending", "assessing", "delayed")


@dataclass(frozen=True, kw_only=True)
class Reserved:
    """Nodes of a queue that a reservation, or a resource group of reservations, provides."""

    id: str
    """Id of the reservation (cr-...), or ARN of the resource group."""
    queue: str
    kind: str
    """Purchase option in the flags' words."""
    types: frozenset[str]
    nodes: int
    subnets: frozenset[str]
    """Subnets that the queue has for itself."""
    in_file: bool
    """True for a queue of the file of queues."""
    typed: str
    """Text to type before another capacity of the queue."""

    @property
    def is_group(self) -> bool:
        """True for a resource group of reservations."""
        return self.id.startswith("arn:")


def reserved_nodes(settings: Settings) -> Iterator[Reserved]:
    """Yield the nodes of each queue by their reservation."""
    nodes = list(compute_nodes(config_before_deploy(settings)))
    listed = read_queues(settings.queues) if settings.queues else {}
    for queue, id_ in dict.fromkeys((each.queue, each.reservation) for each in nodes if each.reservation):
        of = [each for each in nodes if (each.queue, each.reservation) == (queue, id_)]
        yield Reserved(
            id=str(id_),
            queue=queue,
            kind=of[0].kind,
            types=frozenset(type_ for each in of for type_ in each.types),
            nodes=sum(each.most for each in of),
            subnets=of[0].subnets - network_subnets(settings),
            in_file=queue in listed,
            typed=f"in {settings.queues}, {queue}: capacity: " if queue in listed else "-c capacity=",
        )


def check_reservations(settings: Settings, existing: ExistingNetwork, client: ClientOf) -> Iterator[Finding]:
    """Check the reservations of all queues; zone.py checks their zone like the deploy, in NetworkStack."""
    code = asset_code("compute_zone", "region", "choice")
    region = code.region.Region(client)
    now = datetime.datetime.now(datetime.UTC)
    for reserved in reserved_nodes(settings):
        found = region.reservations(reserved.id)
        if found is None:
            yield _missing(reserved)
            continue
        if not region.launches_into(reserved.id):
            words, mend = "instances cannot launch into this group", f"another one: {code.choice.POOL}"
            yield Finding(check=f"capacity {reserved.id}", found=words, verdict="problem", mend=mend)
        elif reserved.is_group:
            yield _group(reserved, found)
        else:
            yield from _one(reserved, found[0], now)
        if zones := _zones(reserved, settings, existing, client("ec2")):
            places = region.zones_of_reservation(reserved.id, reserved.types)
            yield finding(
                "reservation: zone",
                f"{', '.join(places) or 'none'}, and the queue's subnets in {', '.join(zones.values())}",
                good=any({id_, name} & {*places} for name, id_ in zones.items()),
                mend=f"in {settings.queues}, {reserved.queue}: subnet_ids: subnets in its zone"
                if reserved.subnets
                else "-c private_subnet_id=... and -c public_subnet_id=... in its zone",
            )


def _zones(reserved: Reserved, settings: Settings, existing: ExistingNetwork, ec2: Any) -> dict[str, str]:
    """Return the ids of the zones of a queue's own subnets, by name; none in the zone of NetworkStack."""
    subnets = [existing.private] if settings.vpc_id and existing.private else []
    if reserved.subnets:
        asked = [{"Name": "subnet-id", "Values": sorted(reserved.subnets)}]
        subnets = ec2.describe_subnets(Filters=asked)["Subnets"]
    return {each["AvailabilityZone"]: each["AvailabilityZoneId"] for each in subnets}


def _missing(reserved: Reserved) -> Finding:
    kind, id_ = reserved.kind, "cr-..."
    list_ = "aws ec2 describe-capacity-reservations"
    if reserved.is_group:
        list_, kind, id_ = "aws resource-groups list-groups", "reservation", "ARN"
    mend = f"{list_}, then {reserved.typed}{kind}:{id_}"
    return Finding(check=f"capacity {reserved.id}", found="missing", verdict="problem", mend=mend)


def _group(reserved: Reserved, found: list[Reservation]) -> Finding:
    suits = [each for each in found if each["InstanceType"] in reserved.types and each["State"] == "active"]
    total = sum(each["TotalInstanceCount"] for each in suits)
    return finding(
        f"capacity {reserved.id}",
        f"{len(found)} reservations, {total} instances of {', '.join(sorted(reserved.types))}; "
        f"the cluster needs {reserved.nodes}",
        good=total >= reserved.nodes,
        otherwise="warning" if total else "problem",
        mend=f"aws resource-groups group-resources --group {reserved.id} --resource-arns ...",
    )


def _one(reserved: Reserved, found: Reservation, now: datetime.datetime) -> Iterator[Finding]:
    yield _state(reserved, found, now)
    yield from _kind(reserved, found)
    type_ = found["InstanceType"]
    yield finding(
        "reservation: instance type",
        type_,
        good=type_ in reserved.types,
        mend=f"-c instance_type={type_} (with its family), or another reservation",
    )
    if found["State"] not in _WAITS:  # a reservation that has not started has no instances yet
        yield _count(reserved, found)


def _state(reserved: Reserved, found: Reservation, now: datetime.datetime) -> Finding:
    state, until, check = found["State"], found.get("EndDate"), f"capacity {reserved.id}"
    start = found.get("StartDate")
    mend = f"aws ec2 describe-capacity-reservations, then {reserved.typed}{reserved.kind}:cr-..."
    if state in _WAITS:
        begins = f"starts {_utc(start)}" if start else "its start is unknown"
        wait = "deploy after its start: until then no node starts"
        return Finding(check=check, found=f"{state}: {begins}", verdict="warning", mend=wait)
    if state != "active" or (until and until <= now):
        ended = f", ended {_utc(until)}" if until else ""
        return Finding(check=check, found=f"{state}{ended}", verdict="problem", mend=mend)
    return Finding(check=check, found=f"active, {f'until {_utc(until)}' if until else 'without end'}")


def _kind(reserved: Reserved, found: Reservation) -> Iterator[Finding]:
    is_block = found.get("ReservationType") == _BLOCK
    kind = _BLOCK if is_block else "reservation"
    yield finding(
        "reservation: kind",
        "a Capacity Block" if is_block else "a reservation",
        good=reserved.kind == kind,
        mend=f"{reserved.typed}{kind}:{found['CapacityReservationId']}",
    )
    tenancy, platform = found.get("Tenancy", "default"), found.get("InstancePlatform", "Linux/UNIX")
    yield finding(
        "reservation: tenancy and platform",
        f"{tenancy}, {platform}",
        good=(tenancy, platform) == ("default", "Linux/UNIX"),
        mend="a reservation of default tenancy for Linux/UNIX: which nodes are",
    )
    targeted = is_block or found.get("InstanceMatchCriteria") == "targeted"
    yield finding(
        "reservation: for named instances only",
        "targeted" if targeted else "open: any instance of this type in the account can use it",
        good=targeted,
        otherwise="warning",
        mend="aws ec2 modify-capacity-reservation --instance-match-criteria targeted "
        f"--capacity-reservation-id {found['CapacityReservationId']}",
    )


def _count(reserved: Reserved, found: Reservation) -> Finding:
    total, idle, nodes = found["TotalInstanceCount"], found["AvailableInstanceCount"], reserved.nodes
    return finding(
        "reservation: instances",
        f"{total}, {idle} of them idle; the cluster needs {nodes}",
        good=total >= nodes,
        mend=f"{reserved.queue}: nodes: {total}" if reserved.in_file else f"-c nodes={total}",
    )


def _utc(when: datetime.datetime) -> str:
    return f"{when.astimezone(datetime.UTC):%Y-%m-%d %H:%M} UTC"
