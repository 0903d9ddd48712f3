"""Checks of a capacity reservation, Capacity Block or group of them: state, instance type, zone and size."""

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ops.account.session import ClientOf
from ops.asset_code import asset_code
from ops.preflight.existing_network import ExistingNetwork
from ops.preflight.finding import Finding, finding
from training_cluster.flags.settings import Settings
from training_cluster.queues.queue import Queue

Reservation = Mapping[str, Any]
"""Reservation as EC2 describes it."""
_BLOCK = "capacity-block"
_WAITS = ("scheduled", "pending", "payment-pending", "assessing", "delayed")


@dataclass(frozen=True, kw_only=True)
class Reserved:
    """Nodes of a queue that a reservation, or a resource group of reservations, provides."""

    id: str
    """Id of the reservation (cr-...), or ARN of the resource group."""
    queue: Queue
    types: frozenset[str]
    nodes: int

    @property
    def is_group(self) -> bool:
        """True for a resource group of reservations."""
        return self.id.startswith("arn:")


def reserved_nodes(queue: Queue) -> Iterator[Reserved]:
    """Yield the nodes of a queue by their reservation."""
    for id_ in queue.reservations:
        of = [
            each for each in queue.compute_resources if (each.reservation_id or queue.reservation_id) == id_
        ]
        types = frozenset(type_.name for each in of for type_ in each.types)
        yield Reserved(id=id_, queue=queue, types=types, nodes=sum(each.max_count for each in of))


def check_reservations(
    queue: Queue, settings: Settings, existing: ExistingNetwork, client: ClientOf
) -> Iterator[Finding]:
    """Check the reservations of a queue; zone.py checks their zone like the deploy, in NetworkStack."""
    code = asset_code("compute_zone", "region", "choice")
    region = code.region.Region(client)
    now, zones = datetime.datetime.now(datetime.UTC), _zones(queue, settings, existing, client("ec2"))
    for reserved in reserved_nodes(queue):
        found = region.reservations(reserved.id)
        if found is None:
            yield _missing(reserved, settings)
            continue
        if not region.launches_into(reserved.id):
            words, mend = "instances cannot launch into this group", f"another one: {code.choice.POOL}"
            yield Finding(check=f"capacity {reserved.id}", found=words, verdict="problem", mend=mend)
        elif reserved.is_group:
            yield _group(reserved, found)
        else:
            yield from _one(reserved, found[0], settings, now)
        if zones:
            places = region.zones_of_reservation(reserved.id, reserved.types)
            yield finding(
                "reservation: zone",
                f"{', '.join(places) or 'none'}, and the queue's subnets in {', '.join(zones.values())}",
                good=any({id_, name} & {*places} for name, id_ in zones.items()),
                mend=f"in {settings.queues}, {queue.name}: subnet_ids: subnets in its zone"
                if queue.subnet_ids
                else "-c private_subnet_id=... and -c public_subnet_id=... in its zone",
            )


def _zones(queue: Queue, settings: Settings, existing: ExistingNetwork, ec2: Any) -> dict[str, str]:
    """Return the ids of the zones of a queue's own subnets, by name; none in the zone of NetworkStack."""
    subnets = [existing.private] if settings.vpc_id and existing.private else []
    if queue.subnet_ids:
        asked = [{"Name": "subnet-id", "Values": [*queue.subnet_ids]}]
        subnets = ec2.describe_subnets(Filters=asked)["Subnets"]
    return {each["AvailabilityZone"]: each["AvailabilityZoneId"] for each in subnets}


def _missing(reserved: Reserved, settings: Settings) -> Finding:
    kind, id_ = reserved.queue.capacity_type, "cr-..."
    list_ = "aws ec2 describe-capacity-reservations"
    if reserved.is_group:
        list_, kind, id_ = "aws resource-groups list-groups", "reservation", "ARN"
    mend = f"{list_}, then {_flag(reserved.queue, settings)}{kind}:{id_}"
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


def _one(
    reserved: Reserved, found: Reservation, settings: Settings, now: datetime.datetime
) -> Iterator[Finding]:
    queue = reserved.queue
    yield _state(f"capacity {reserved.id}", found, queue, settings, now)
    yield from _kind(found, queue, settings)
    type_ = found["InstanceType"]
    yield finding(
        "reservation: instance type",
        type_,
        good=type_ in reserved.types,
        mend=f"-c instance_type={type_} (with its family), or another reservation",
    )
    if found["State"] not in _WAITS:  # a reservation that has not started has no instances yet
        yield from _count(found, reserved, settings)


def _state(
    check: str, found: Reservation, queue: Queue, settings: Settings, now: datetime.datetime
) -> Finding:
    state, until = found["State"], found.get("EndDate")
    start = found.get("StartDate")
    mend = (
        f"aws ec2 describe-capacity-reservations, then {_flag(queue, settings)}{queue.capacity_type}:cr-..."
    )
    if state in _WAITS:
        begins = f"starts {_utc(start)}" if start else "its start is unknown"
        wait = "deploy after its start: until then no node starts"
        return Finding(check=check, found=f"{state}: {begins}", verdict="warning", mend=wait)
    if state != "active" or (until and until <= now):
        ended = f", ended {_utc(until)}" if until else ""
        return Finding(check=check, found=f"{state}{ended}", verdict="problem", mend=mend)
    return Finding(check=check, found=f"active, {f'until {_utc(until)}' if until else 'without end'}")


def _kind(found: Reservation, queue: Queue, settings: Settings) -> Iterator[Finding]:
    is_block = found.get("ReservationType") == _BLOCK
    kind = _BLOCK if is_block else "reservation"
    wanted = _BLOCK if queue.capacity_type == _BLOCK else "reservation"
    yield finding(
        "reservation: kind",
        "a Capacity Block" if is_block else "a reservation",
        good=wanted == kind,
        mend=f"{_flag(queue, settings)}{kind}:{found['CapacityReservationId']}",
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


def _count(found: Reservation, reserved: Reserved, settings: Settings) -> Iterator[Finding]:
    total, idle = found["TotalInstanceCount"], found["AvailableInstanceCount"]
    queue, nodes = reserved.queue, reserved.nodes
    yield finding(
        "reservation: instances",
        f"{total}, {idle} of them idle; the cluster needs {nodes}",
        good=total >= nodes,
        mend=f"-c nodes={total}" if _is_of_flags(queue, settings) else f"{queue.name}: nodes: {total}",
    )


def _is_of_flags(queue: Queue, settings: Settings) -> bool:
    return queue.name == settings.first_queue.name


def _flag(queue: Queue, settings: Settings) -> str:
    """Return what to type before another capacity."""
    of_flags = _is_of_flags(queue, settings)
    return "-c capacity=" if of_flags else f"in {settings.queues}, {queue.name}: capacity: "


def _utc(when: datetime.datetime) -> str:
    return f"{when.astimezone(datetime.UTC):%Y-%m-%d %H:%M} UTC"
