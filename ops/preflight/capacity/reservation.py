"""Checks of a capacity reservation or Capacity Block: state, instance type, zone and size."""

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ops.account.session import ClientOf, unless
from ops.preflight.existing_network import ExistingNetwork
from ops.preflight.finding import Finding, finding
from training_cluster.flags.settings import Settings
from training_cluster.queues.queue import Queue

Reservation = Mapping[str, Any]
"""Reservation as EC2 describes it."""
_BLOCK = "capacity-block"
_UNKNOWN = ("InvalidCapacityReservationId.NotFound", "InvalidCapacityReservationId.Malformed")
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


def read_reservation(id_: str | None, ec2: Any) -> Reservation | None:
    """Return a reservation; None without an id, or if it does not exist."""
    if id_ is None:
        return None
    answer = unless(lambda: ec2.describe_capacity_reservations(CapacityReservationIds=[id_]), *_UNKNOWN)
    found: list[Reservation] = answer["CapacityReservations"] if answer else []
    return found[0] if found else None


def check_reservations(
    queue: Queue, settings: Settings, existing: ExistingNetwork, client: ClientOf
) -> Iterator[Finding]:
    """Check the reservations of a queue; for a new network, zone.py checks their zone like the deploy."""
    now = datetime.datetime.now(datetime.UTC)
    for reserved in reserved_nodes(queue):
        if reserved.is_group:
            yield from _group(reserved, settings, client)
        else:
            yield from _one(reserved, settings, existing, now, client("ec2"))


def _group(reserved: Reserved, settings: Settings, client: ClientOf) -> Iterator[Finding]:
    groups, missing = client("resource-groups"), ("NotFoundException", "BadRequestException")
    check, mend = f"capacity {reserved.id}", "aws resource-groups list-groups, then "
    mend += f"{_flag(reserved.queue, settings)}reservation:ARN"
    answer = unless(lambda: groups.list_group_resources(Group=reserved.id), *missing)
    if answer is None:
        yield Finding(check=check, found="missing", verdict="problem", mend=mend)
        return
    arns = [each["Identifier"]["ResourceArn"] for each in answer.get("Resources", [])]
    ids = [each.rpartition("/")[2] for each in arns if ":capacity-reservation/" in each]
    ec2 = client("ec2")
    found = [each for id_ in ids if (each := read_reservation(id_, ec2))]
    suits = [each for each in found if each["InstanceType"] in reserved.types and each["State"] == "active"]
    total = sum(each["TotalInstanceCount"] for each in suits)
    yield finding(
        check,
        f"{len(found)} reservations, {total} instances of {', '.join(sorted(reserved.types))}; "
        f"the cluster needs {reserved.nodes}",
        good=total >= reserved.nodes,
        otherwise="warning" if total else "problem",
        mend=f"aws resource-groups group-resources --group {reserved.id} --resource-arns ...",
    )


def _one(
    reserved: Reserved, settings: Settings, existing: ExistingNetwork, now: datetime.datetime, ec2: Any
) -> Iterator[Finding]:
    queue, found = reserved.queue, read_reservation(reserved.id, ec2)
    check, list_ = f"capacity {reserved.id}", "aws ec2 describe-capacity-reservations"
    if found is None:
        mend = f"{list_}, then {_flag(queue, settings)}{queue.capacity_type}:cr-..."
        yield Finding(check=check, found="missing", verdict="problem", mend=mend)
        return
    yield _state(check, found, queue, settings, now)
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
    if settings.vpc_id and existing.zone_id:
        zone = found.get("AvailabilityZoneId") or found["AvailabilityZone"]
        names = (existing.zone_id, (existing.private or {}).get("AvailabilityZone"))
        yield finding(
            "reservation: zone",
            zone if zone in names else f"{zone}, and the private subnet in {existing.zone_id}",
            good=zone in names,
            mend=f"-c private_subnet_id=... and -c public_subnet_id=... in {zone}",
        )


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
