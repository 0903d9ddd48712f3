"""Prints a quote for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ops.options import print_table
from ops.price.quote import Quote
from ops.price.training import TrainingCost
from training_cluster.catalog.families import load_base

if TYPE_CHECKING:
    from ops.goodput.forecast import Forecast
    from ops.price.expected import Expected


def show_quote(quote: Quote, console: Console) -> None:
    """Print the table, and below it the sources of the prices."""
    hours = load_base().prices.hours_per_month
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_footer=True)
    table.add_column("USD, list prices", footer="total")
    sums = (quote.idle_usd_per_hour, quote.full_usd_per_hour, quote.idle_usd_per_month)
    for title, total in zip(("idle /h", "all /h", "idle /month"), sums, strict=True):
        table.add_column(title, justify="right", footer=_usd(total))
    table.add_column("price of")
    for row in quote.rows:
        idle = row.idle_usd_per_hour
        month = None if idle is None else idle * hours
        source = "; ".join(filter(None, (row.source, row.note)))
        table.add_row(Text(row.what), _usd(idle), _usd(row.full_usd_per_hour), _usd(month), Text(source))
    print_table(table, console)
    for line in _footnotes(quote):
        console.print(Text(line))


def _footnotes(quote: Quote) -> Iterator[str]:
    prices = load_base().prices
    if quote.unknown:
        yield f"Not in the sums: {'; '.join(f'{row.what}: {row.note}' for row in quote.unknown)}."
    if quote.why_catalog:
        yield f"Rows name the catalog if an instance price is from it: {quote.why_catalog}."
    yield (
        f"The catalog, cluster_configs/prices.yaml, has list prices of {prices.region}, and is the source of "
        f"all prices but the instances'. The region of this cluster: {quote.region}."
    )
    yield "Storage and transfer are extra: GB in S3 and EFS, through the NAT gateway, out of the region."


def show_training(costs: Sequence[TrainingCost], console: Console, *, whole: str = "an epoch") -> None:
    """Print the cost of training; published figures are marked as such.

    Args:
        whole: what the tokens are, of which the cost has the sum.
    """
    for cost in costs:
        speed = cost.speed
        origin = "" if speed.is_measured else "published, not measured here: "
        console.print(
            Text(
                f"{origin}{speed.what}: {speed.per_s:,.0f} {speed.unit}/s on {speed.nodes} node(s) at "
                f"{_usd(cost.usd_per_hour)} an hour"
            )
        )
        epoch = (
            f"; {whole} {_usd(cost.usd_per_epoch)}, in {cost.hours_per_epoch:,.1f} h"
            if cost.hours_per_epoch is not None
            else ""
        )
        console.print(Text(f"  a million {speed.unit} cost {cost.usd_per_million:,.4f} USD{epoch}"))


def show_expected(expected: Expected, console: Console) -> None:
    """Print what the trainer would choose, and how long the run would take."""
    console.print(Text("The model fits:"))
    for each in expected.reasons:
        console.print(Text(f"  {each}"))
    days = expected.tokens / expected.speed.per_s / 86400
    console.print(
        Text(f"Its {expected.tokens:,} tokens (MAX_STEPS) take {days:,.2f} days at an estimated speed:")
    )
    console.print(Text(f"  {expected.speed.per_s:,.0f} tokens/s: {expected.speed.what}"))


def show_storage(sentences: Sequence[str], console: Console) -> None:
    """Print the sentences about checkpoints, images and NFS."""
    console.print(Text("Storage, calculated and not measured:"))
    for each in sentences:
        console.print(Text(f"  {each}"))


def show_forecast(ahead: Forecast, console: Console) -> None:
    """Print the interruptions to expect, and the share of paid time that trains."""
    console.print(
        Text(
            f"In {ahead.days:g} days expect {ahead.interruptions:,.1f} interruptions. With a save every "
            f"{ahead.save_every_s / 60:,.0f} min, {ahead.train_share:.1%} of the paid time trains. "
            f"Spare nodes worth their price: {ahead.spares}."
        )
    )
    for source in ahead.sources:
        console.print(Text(f"  rate: {source}"))
    console.print(Text(f"  {'; '.join(ahead.facts)}"))


def _usd(value: float | None) -> str:
    return "not known" if value is None else f"{value:,.2f}"
