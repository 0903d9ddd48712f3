"""Instance prices for a quote, from AWS or else from the catalog, with the reasons."""

import datetime
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from ops.account.aws_errors import explain
from ops.account.session import ClientOf
from ops.preflight.existing_network import read_existing_network
from ops.price.price_list import PRICE_LIST, SPOT, list_price, spot_price
from training_cluster.catalog.families import instance_hour, load_base
from training_cluster.catalog.prices import Price
from training_cluster.cluster.fleet import fleet
from training_cluster.cluster.nodes import Rendered
from training_cluster.flags.settings import Settings

NOT_ASKED = "--offline: AWS was not asked"


@dataclass(frozen=True, kw_only=True)
class PriceBook:
    """Instance prices of one region."""

    region: str
    on_demand: Mapping[str, Price] = field(default_factory=dict)
    """Prices of the Price List API by instance type; the catalog has the others."""
    spot: Mapping[str, Price] = field(default_factory=dict)
    """Spot prices by instance type."""
    why_catalog: str = ""
    """Reason why some or all instance prices are the catalog's; "" if none is."""
    why_no_spot: str = ""

    def hour(self, instance_type: str) -> Price | None:
        """Return the on-demand price of an hour; None if it is unknown."""
        return self.on_demand.get(instance_type) or instance_hour(instance_type)


def catalog_book(why: str = NOT_ASKED) -> PriceBook:
    """Return a book with the catalog's prices only."""
    return PriceBook(region=load_base().prices.region, why_catalog=why, why_no_spot=why)


def ask_prices(
    settings: Settings,
    configs: Iterable[Rendered],
    *,
    client: Callable[[], ClientOf],
    pricing: Callable[[], Any],
) -> PriceBook:
    """Read the prices of all instance types of cluster configs from AWS.

    The catalog provides the missing ones: an error of AWS becomes a reason in the book, and is not raised.

    Args:
        settings: flags with the network, in whose zone spot nodes run.
        client, pricing: functions that create clients of the account, and of the Price List API.
    """
    nodes = [each for config in configs for each in fleet(config)]
    try:
        clients = client()
        region = clients("ec2").meta.region_name
    except (BotoCoreError, ClientError) as error:
        return catalog_book(_reason(error))
    on_demand, why = _on_demand(sorted({type_ for each in nodes for type_ in each.types}), region, pricing)
    of_spot = {type_: None for each in nodes if each.kind == "spot" for type_ in each.types}
    spot, why_no_spot = _spot(of_spot, settings, clients)
    return PriceBook(region=region, on_demand=on_demand, spot=spot, why_catalog=why, why_no_spot=why_no_spot)


def _on_demand(types: list[str], region: str, pricing: Callable[[], Any]) -> tuple[dict[str, Price], str]:
    found: dict[str, Price] = {}
    try:
        api = pricing()
        for type_ in types:
            if price := list_price(type_, region=region, pricing=api):
                found[type_] = price
    except (BotoCoreError, ClientError) as error:
        return found, _reason(error)
    missing = [each for each in types if each not in found]
    return found, f"the {PRICE_LIST} has no {' and no '.join(missing)} in {region}" if missing else ""


def _spot(types: Iterable[str], settings: Settings, client: ClientOf) -> tuple[dict[str, Price], str]:
    found: dict[str, Price] = {}
    now, missing = datetime.datetime.now(datetime.UTC), []
    try:
        for type_ in types:
            zone = _zone(settings, client)
            if price := spot_price(type_, zone=zone, ec2=client("ec2"), now=now):
                found[type_] = price
            else:
                missing.append(type_)
    except (BotoCoreError, ClientError) as error:
        return found, _reason(error)
    return found, f"EC2 has no {SPOT} of {', '.join(missing)} here" if missing else ""


def _zone(settings: Settings, client: ClientOf) -> str | None:
    private = read_existing_network(settings, client).private
    return str(private["AvailabilityZone"]) if private else settings.zone


def _reason(error: BotoCoreError | ClientError) -> str:
    return explain(error).splitlines()[0]
