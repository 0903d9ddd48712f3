"""`trainctl price`: rows that add up, each with the source of its price, and what a token costs."""

import dataclasses
import datetime
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import NoCredentialsError, NoRegionError
from rich.console import Console

from ops.price.metrics import metrics_cost, render_metrics_cost
from ops.price.price_book import PriceBook, ask_prices, catalog_book
from ops.price.quote import Quote, Row, make_quote
from ops.price.render import show_quote
from ops.price.training import given_speed, measured_speed, published_speeds, training_cost
from ops.report.record import Run, Start, Summary
from ops.usage import UsageError
from tests.unit.ops.fake_account import Account, Refused
from tests.unit.ops.jobs_head_node import Call
from training_cluster.advice.idle_cost import idle_cost
from training_cluster.catalog.families import instance_hour, load_base
from training_cluster.flags.settings import Settings
from training_cluster.paths import ROOT
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.rules.context import read_settings

NODE = 21.96 + 256 * 0.08 / 730
"""A p4d.24xlarge with its disk, an hour."""
RESERVED = "reservation:cr-0123456789abcdef0"
BLOCK = "capacity-block:cr-0123456789abcdef0"


def _settings(**flags: str) -> Settings:
    return read_settings(flags)


def _quote(**flags: str) -> Quote:
    settings = _settings(**flags)
    return make_quote(settings, catalog_book(), config_before_deploy(settings))


def _nodes(quote: Quote) -> Row:
    return next(row for row in quote.rows if f"x {quote.instance_type}," in row.what)


def test_the_rows_sum_to_the_totals() -> None:
    for flags in (
        {},
        {"family": "p5", "nodes": "16", "min_nodes": "4", "cpu_queue": "on"},
        {"family": "trn1", "login_nodes": "2", "accounting": "new", "endpoints": "private"},
        {"family": "m6i", "capacity": "spot"},
        {"capacity": RESERVED},
        {"family": "p5", "capacity": BLOCK},
        {"head_node_type": "c7i.8xlarge"},
        {"family": "p5", "queues": "rehearsal/validation/queues/several.yaml"},
    ):
        quote = _quote(**flags)
        assert quote.idle_usd_per_hour == pytest.approx(sum(row.idle_usd_per_hour or 0 for row in quote.rows))
        assert quote.full_usd_per_hour == pytest.approx(sum(row.full_usd_per_hour or 0 for row in quote.rows))
        assert quote.idle_usd_per_month == pytest.approx(quote.idle_usd_per_hour * 730)
        assert quote.full_usd_per_hour >= quote.idle_usd_per_hour > 0
        for row in quote.rows:
            assert (row.source == "") == (row.full_usd_per_hour is None), "a price has a source"
            assert row.full_usd_per_hour is not None or row.note, "what is not known says why"


@pytest.mark.parametrize("flags", [{}, {"min_nodes": "2"}, {"login_nodes": "1", "fsx_gib": "4800"}])
def test_idle_is_what_synth_says(flags: dict[str, str]) -> None:
    settings = _settings(**flags)
    charges = idle_cost(settings, config_before_deploy(settings))
    assert _quote(**flags).idle_usd_per_month == pytest.approx(sum(each.usd for each in charges))


def test_nodes_cost_as_they_are_bought() -> None:
    for flags, idle, full, note in (
        ({}, 0, 2 * NODE, ""),
        ({"nodes": "4", "min_nodes": "1"}, NODE, 4 * NODE, "1 always run (min_nodes)"),
        ({"nodes": "3", "capacity": RESERVED}, 3 * NODE, 3 * NODE, "billed anyway; more, if the reservation"),
        ({"capacity": "spot"}, None, None, "--offline: AWS was not asked"),
        ({"capacity": BLOCK}, None, None, "paid in advance, with the purchase of the block"),
    ):
        row = _nodes(_quote(**flags))
        assert row.idle_usd_per_hour == (None if idle is None else pytest.approx(idle))
        assert row.full_usd_per_hour == (None if full is None else pytest.approx(full))
        assert row.note.startswith(note)


def _product(usd: str, **more: str) -> str:
    dimension = {"unit": "Hrs", "pricePerUnit": {"USD": usd}} | more
    offer = {"effectiveDate": "2026-09-01T00:00:00Z", "priceDimensions": {"b": dimension}}
    return json.dumps({"product": {}, "terms": {"OnDemand": {"a": offer}}})


def _price_list(prices: dict[str, list[str]]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def answer(asked: dict[str, Any]) -> dict[str, Any]:
        filters = {each["Field"]: each["Value"] for each in asked["Filters"]}
        assert (asked["ServiceCode"], filters["regionCode"]) == ("AmazonEC2", "us-east-1")
        assert (filters["operatingSystem"], filters["tenancy"]) == ("Linux", "Shared")
        assert (filters["preInstalledSw"], filters["capacitystatus"]) == ("NA", "Used")
        return {"PriceList": prices.get(filters["instanceType"], []), "FormatVersion": "aws_v1"}

    return answer


def _ask(account: Account, **flags: str) -> tuple[Quote, PriceBook]:
    settings = _settings(**flags)
    config = config_before_deploy(settings)
    pricing = partial(account.client, "pricing")
    book = ask_prices(settings, [config], client=lambda: account.client, pricing=pricing)
    return make_quote(settings, book, config), book


def test_each_row_names_its_price_list() -> None:
    products = {"p4d.24xlarge": [_product("30.5")], "c5.4xlarge": [_product("0.7"), _product("0.0000")]}
    quote, book = _ask(Account({"GetProducts": _price_list(products)}))
    assert book.why_catalog == ""
    row = _nodes(quote)
    assert row.full_usd_per_hour == pytest.approx(2 * (30.5 + 256 * 0.08 / 730))
    assert row.source.startswith("Price List API 2026-09-01; catalog ")
    head = next(each for each in quote.rows if each.what.startswith("head node"))
    assert head.full_usd_per_hour == pytest.approx(0.7 + 0.005 + 128 * 0.08 / 730)
    assert next(each for each in quote.rows if each.what.startswith("NAT")).source.startswith("catalog")


def test_unclear_prices_are_taken_from_the_catalog() -> None:
    for products in (
        {"c5.4xlarge": [_product("0.7")]},
        {"c5.4xlarge": [_product("0.7")], "p4d.24xlarge": [_product("1"), _product("2")]},
        {"c5.4xlarge": [_product("0.7")], "p4d.24xlarge": [_product("9", unit="Quantity")]},
    ):
        quote, book = _ask(Account({"GetProducts": _price_list(products)}))
        assert book.why_catalog == "the Price List API has no p4d.24xlarge in us-east-1"
        assert _nodes(quote).source.startswith("catalog")
        assert _nodes(quote).full_usd_per_hour == pytest.approx(2 * NODE)


def test_a_refused_price_list_gives_one_reason() -> None:
    denied = Refused("AccessDeniedException", "not authorized to perform: pricing:GetProducts")
    quote, book = _ask(Account({"GetProducts": denied}))
    assert "pricing:GetProducts" in book.why_catalog
    assert "\n" not in book.why_catalog
    assert quote.full_usd_per_hour == pytest.approx(_quote().full_usd_per_hour)


@pytest.mark.parametrize(
    ("error", "why"), [(NoRegionError(), "no AWS region"), (NoCredentialsError(), "no AWS credentials")]
)
def test_without_an_account_the_catalog_answers(error: Exception, why: str) -> None:
    def client() -> Any:
        raise error

    book = ask_prices(_settings(), [], client=client, pricing=client)
    assert why in book.why_catalog
    assert book.hour("p4d.24xlarge") == instance_hour("p4d.24xlarge")


def _spot(*prices: tuple[str, str, int]) -> dict[str, Any]:
    """Zone, price, and the hour at which it began."""
    history = [
        {
            "AvailabilityZone": zone,
            "SpotPrice": usd,
            "Timestamp": datetime.datetime(2026, 9, 1, hour, tzinfo=datetime.UTC),
        }
        for zone, usd, hour in prices
    ]
    return {
        "GetProducts": _price_list({}),
        "DescribeStacks": {"Stacks": []},
        "DescribeSpotPriceHistory": {"SpotPriceHistory": history},
    }


def test_spot_has_its_zones_newest_price() -> None:
    for flags, usd, source in (
        ({"zone": "us-east-1a"}, 7, "spot price in us-east-1a, "),
        ({}, 12, "spot price in us-east-1b, the most expensive of 2 zone(s)"),
    ):
        answers = _spot(("us-east-1a", "7", 3), ("us-east-1a", "9", 1), ("us-east-1b", "12", 2))
        row = _nodes(_ask(Account(answers), capacity="spot", **flags)[0])
        assert row.full_usd_per_hour == pytest.approx(2 * (usd + 256 * 0.08 / 730))
        assert row.source.startswith(source)
        assert row.idle_usd_per_hour == 0


def test_spot_without_a_price_is_left_out() -> None:
    quote, _ = _ask(Account(_spot()), capacity="spot")
    assert quote.unknown == (_nodes(quote),)
    assert "EC2 has no spot price of p4d.24xlarge" in _nodes(quote).note


def test_tokens_and_epochs_cost_their_hours() -> None:
    quote = _quote(nodes="4")
    cost = training_cost(given_speed(100_000, _settings(nodes="4")), quote, 3.6e9)
    assert cost
    by_hour = quote.standing_usd_per_hour + 4 * NODE
    assert cost.usd_per_hour == pytest.approx(by_hour)
    assert cost.usd_per_million == pytest.approx(by_hour / 360)  # 100,000 a second are 360 million an hour
    assert cost.hours_per_epoch == pytest.approx(10)
    assert cost.usd_per_epoch == pytest.approx(10 * by_hour)


def test_a_run_has_the_speed_of_its_nodes() -> None:
    run = Run.model_construct(
        workload="gpt2",
        run="job-17",
        starts=[Start.model_construct(node_count=3)],
        summary=Summary(tokens_per_s=5e4),
    )
    speed = measured_speed(run)
    assert (speed.what, speed.nodes, speed.per_s) == ("gpt2/job-17", 3, 5e4)
    with pytest.raises(UsageError, match=r"gpt2/job-17 has no tokens/s(.|\n)*--tokens-per-s N"):
        measured_speed(run.model_copy(update={"summary": Summary()}))


def test_published_figures_of_a_family_are_not_measured() -> None:
    (speed,) = published_speeds(_settings(family="p4d"))
    assert (speed.per_s, speed.nodes, speed.is_measured) == (853_000, 1, False)
    assert speed.what.startswith("gpt2: ")
    (words,) = published_speeds(_settings(family="p3dn"))
    assert words.unit == "words"
    assert list(published_speeds(_settings(family="g5", instance_type="g5.12xlarge"))) == []


def test_offline_asks_nobody_and_json_adds_up(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ops.account.session.account_clients", lambda: pytest.fail("asked"))
    code, output, _ = call(*("price", "--offline", "--json", "-c", "cpu_queue=on", "--dataset-tokens", "9e9"))
    said = json.loads(output)
    quote = said["quote"]
    assert code == 0
    assert quote["full_usd_per_hour"] == pytest.approx(sum(row["full_usd_per_hour"] for row in quote["rows"]))
    assert "AWS was not asked" in quote["why_catalog"]
    assert said["training"][0]["usd_per_epoch"] > 0


def test_what_synth_refuses_has_no_price(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget that nothing would enforce."""
    users = tmp_path / "users.yaml"
    users.write_text("accounts: {nlp: {gid: 6001, max_gpu_hours: 9}}\nusers: {alice: {uid: 5001}}\n")
    typed = ("price", "-c", f"users={users}")
    with monkeypatch.context() as without_account:
        without_account.setattr("ops.account.session.account_clients", lambda: pytest.fail("asked"))
        code, output, told = call(*typed)
    assert (code, output) == (2, "")
    assert "accounts.nlp.max_gpu_hours: nothing enforces it without Slurm's accounting" in told
    assert call(*typed, "--offline", "-c", "accounting=new")[0] == 0
    code, _, told = call(*typed, "-c", "accounting=new", "-c", "family=m6i")
    assert (code, "accounts.nlp.max_gpu_hours: no node of this cluster has a GPU" in told) == (2, True)


def test_the_table_has_sums_and_what_they_omit() -> None:
    console = Console(record=True, width=140, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    quote = _quote(capacity="spot")
    show_quote(quote, console)
    shown = console.export_text()
    assert f"{quote.idle_usd_per_month:,.2f}" in shown
    assert "Not in the sums: 2 x p4d.24xlarge, spot: --offline" in shown
    assert f"list prices of {load_base().prices.region}" in shown


def test_the_pages_have_the_costs_of_each_store() -> None:
    page, readme = ((ROOT / name).read_text() for name in ("docs/costs.md", "README.md"))
    of = (read_settings({"family": "p5", "nodes": nodes}) for nodes in (1, 16, 256))
    costs = {each.nodes: metrics_cost(config_before_deploy(each)) for each in of}
    for nodes, cost in costs.items():
        sums = " | ".join(f"{each:.0f}" for each in (cost.cloudwatch, cost.prometheus, cost.amp))
        assert f"\n| {nodes} | {sums} |\n" in page
    for store in ("cloudwatch", "amp"):
        one, some, many = (round(getattr(cost, store)) for cost in costs.values())
        assert f"{one}, {some} and {many}" in " ".join(readme.split())


def test_doubt_about_prices_is_said() -> None:
    cost = metrics_cost(config_before_deploy(read_settings({"nodes": "4"})))
    line = render_metrics_cost(cost)
    assert line.startswith("Metrics of 4 nodes")
    assert "unconfirmed" not in line
    assert "unconfirmed" in render_metrics_cost(dataclasses.replace(cost, unconfirmed=True))
