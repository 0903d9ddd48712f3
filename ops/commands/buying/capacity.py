"""The subcommand `trainctl capacity`."""

from typing import Annotated

import typer

from ops.options import Json, console, print_json, print_table


def capacity(
    family: Annotated[str, typer.Option(metavar="NAME", help="Instance family, or an instance type.")],
    nodes: Annotated[int, typer.Option("--nodes", "-N", min=1, metavar="N", help="Number of nodes.")] = 2,
    days: Annotated[
        int, typer.Option(min=1, max=1000, metavar="N", help="Days for which the nodes are needed.")
    ] = 1,
    *,
    regions: Annotated[
        str | None,
        typer.Option(
            metavar="REGION,...", help="Regions to ask. Default: those that are known to have the family."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show where nodes can be had, when and for how much, with the flags to type. Buys nothing.

    The account's reservations and Capacity Blocks come first, then blocks to buy, spot and on demand by their
    cost for the whole time. A call that AWS refuses is a row, and the others are shown.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ops.account.session import account_clients, account_session
    from ops.capacity.search import Wanted, search
    from ops.price.price_list import pricing_client
    from ops.usage import UsageError
    from training_cluster.problems import ConfigurationError
    from training_cluster.rules.context import read_settings

    if not family:
        raise UsageError(
            "capacity: --family is empty\n  allowed: an instance family or type\n  type:    --family p5"
        )
    typed = {"instance_type": family} if "." in family else {"family": family}
    try:
        wanted = Wanted(settings=read_settings(typed | {"nodes": str(nodes)}), days=days)
    except ConfigurationError as error:
        said = str(error).partition("\n")[2]
        for flag, option in {**dict.fromkeys(typed, "--family"), "nodes": "--nodes"}.items():
            said = said.replace(f"-c {flag}=", f"{option} ").replace(f"  {flag}=", f"  {option} ")
        raise UsageError(f"capacity: {said.strip()}") from None
    asked = [each.strip() for each in (regions or "").split(",") if each.strip()]
    asked = (
        asked or [*wanted.settings.family_facts.zones] or [str(account_session().region_name or "us-east-1")]
    )
    with Console(stderr=True).status("capacity") as shown:
        offers = search(
            wanted,
            asked,
            clients=account_clients,
            pricing=pricing_client,
            starts=lambda region: shown.update(f"capacity: asking {region}"),
        )
    if as_json:
        return print_json({"type": wanted.type, "nodes": nodes, "days": days, "offers": offers})
    titles = ("region", "zone", "how", "found, times in UTC", f"USD for {days} d", "type")
    table = Table(*titles, box=box.SIMPLE_HEAD, pad_edge=False)
    for each in offers:
        usd = "" if each.usd is None else f"{each.usd:,.0f}"
        words = (each.region, each.zone, each.how, each.found, usd, each.type)
        table.add_row(*map(Text, words))
    print_table(table, console())
    return console().print(
        f"{nodes} x {wanted.type}. For another region than yours: trainctl --region REGION ... EC2 always "
        "scores a single instance type low (API reference, GetSpotPlacementScores)."
    )
