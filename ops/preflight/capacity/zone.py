"""Finds the zone that a deploy would choose, and the other suitable ones; checks an existing one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ops.account.session import ClientOf
from ops.asset_code import asset_code
from ops.preflight.existing_network import ExistingNetwork
from ops.preflight.finding import Finding, finding
from training_cluster.cluster.zone_needs import zone_needs
from training_cluster.flags.settings import Settings
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.stack_names import NETWORK_STACK


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Zone that a deploy would choose."""

    types: tuple[str, ...]
    """Instance types that it has to offer."""
    zone_id: str | None
    """Id of the zone; None if the deploy would stop."""
    zone_name: str | None
    suitable: tuple[str, ...]
    """Ids of the zones that have all instance types and reservations."""
    refusal: str
    """Message of the deploy; "" if it would continue."""
    of_database: tuple[str, ...] = ()
    """Names of the two zones of a new accounting database."""
    without_database: tuple[str, ...] = ()
    """Those of them that do not offer it."""


Chooser = Callable[[], Choice]
"""Returns the choice; EC2 is asked once, for the first check that needs it."""


def choose_zone(settings: Settings, existing: ExistingNetwork, client: ClientOf) -> Choice:
    """Choose the zone like the deploy, with AWS's answers."""
    code = asset_code("compute_zone", "region", "choice")
    region = code.region.Region(client)
    needs = zone_needs(settings, config_before_deploy(settings))
    # Another check reports reservations that do not exist or do not suit.
    needs["Reservations"] = [
        each
        for each in needs["Reservations"]
        if region.zones_of_reservation(each["Id"], each["Types"]) and region.launches_into(each["Id"])
    ]
    request, types = code.choice.read_request(needs), tuple(needs["InstanceTypes"])
    kept = code.choice.find(existing.zone_id, region) if existing.zone_id else None
    suitable = tuple(each.id for each in code.choice.suitable(request, region))
    try:
        zone = code.choice.keep(kept, request, region) if kept else code.choice.choose(request, region)
    except code.choice.RefusedError as error:
        return Choice(types=types, zone_id=None, zone_name=None, suitable=suitable, refusal=str(error))
    of_database: tuple[str, ...] = ()
    if settings.accounting == "new":
        stack = existing.stacks.get(NETWORK_STACK)
        other = stack.outputs.get("OtherZoneName") if stack else None
        of_database = (zone.name, other or code.choice.beside(zone, region).name)
    return Choice(
        types=types,
        zone_id=zone.id,
        zone_name=zone.name,
        suitable=suitable,
        refusal="",
        of_database=of_database,
        without_database=tuple(name for name in of_database if name not in region.zone_names_with_databases),
    )


def check_zone(choose: Chooser, settings: Settings, existing: ExistingNetwork) -> Iterator[Finding]:
    """Check the zone of a deploy, unless the network is the user's own."""
    if settings.vpc_id:
        return
    choice = choose()
    types = ", ".join(choice.types)
    check = f"zone with {types}"
    if choice.refusal:
        if existing.zone_id:
            mend = 'leave zone out; docs/queues.md, "Queues in other zones"'
        elif choice.suitable:
            mend = f"-c zone={choice.suitable[0]}"
        else:
            mend = "another region (export AWS_REGION=...) or -c family=...: docs/families.md lists zones"
        yield Finding(check=check, found=choice.refusal, verdict="problem", mend=mend)
        return
    here = f"{choice.zone_id} ({choice.zone_name})"
    others = ", ".join(each for each in choice.suitable if each != choice.zone_id) or "no other"
    if existing.zone_id:
        found = f"{here}, the zone of the network"
    else:
        found = f"a deploy takes {here}; others for -c zone=...: {others}"
    yield Finding(check=check, found=found)
    if choice.of_database:
        lacking = ", ".join(choice.without_database)
        yield finding(
            "zones of the accounting database",
            f"RDS does not offer it in {lacking}" if lacking else ", ".join(choice.of_database),
            good=not lacking,
            otherwise="warning",
            mend="-c accounting=HOST:3306 -c accounting_secret=arn:..., your own database",
        )


def check_instance_types(
    settings: Settings, existing: ExistingNetwork, client: ClientOf
) -> Iterator[Finding]:
    """Check that the zone of the user's own network, which both subnets are in, has each instance type."""
    if not settings.vpc_id or existing.zone_id is None:
        return
    region = asset_code("compute_zone", "region", "choice").region.Region(client)
    wanted: list[str] = zone_needs(settings, config_before_deploy(settings))["InstanceTypes"]
    offered = {type_: region.zone_ids_with(type_) for type_ in wanted}
    whole = ", ".join(sorted(frozenset.intersection(*offered.values()))) or "none"
    for type_, zones in offered.items():
        is_here = existing.zone_id in zones
        where = ", ".join(sorted(zones)) or f"no zone of {region.name}"
        yield finding(
            f"{type_} in {existing.zone_id}",
            "offered" if is_here else f"not offered; in {where}",
            good=is_here,
            mend=f"subnets in a zone that has all types: {whole}",
        )
