"""The cost of idle resources, which is counted and shown before they are created."""

import json
import re
from pathlib import Path

import pytest

from tests.unit.stacks.app import OWN_NETWORK
from training_cluster.advice.advice import advice
from training_cluster.advice.idle_cost import idle_cost, render_idle_cost
from training_cluster.catalog.charges import Charge
from training_cluster.catalog.families import family_names, instance_hour, load_base, load_family
from training_cluster.flags.network import INTERFACE_ENDPOINTS
from training_cluster.paths import ROOT
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.rules.context import read_settings

FSX = "fs-0123456789abcdef0"


def _idle_cost(**flags: str) -> tuple[Charge, ...]:
    settings = read_settings(flags)
    return idle_cost(settings, config_before_deploy(settings))


def _items(**flags: str) -> dict[str, Charge]:
    """Return the charges by their first words."""
    return {each.what.split(",")[0]: each for each in _idle_cost(**flags)}


def _said(**flags: str) -> str:
    return render_idle_cost(_idle_cost(**flags))


def test_the_page_shows_the_default_note() -> None:
    shown = re.findall(r"^    (.*)$", (ROOT / "docs/costs.md").read_text(), re.MULTILINE)[:4]
    assert _said().splitlines()[:4] == shown


def test_what_overrides_add_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "overrides.yaml"
    ebs = "StorageType: Ebs, EbsSettings"
    file.write_text(
        "LoginNodes: {Pools: [{Name: more, Count: 2, InstanceType: m6i.large}]}\nSharedStorage:\n"
        f"  - {{Name: a, MountDir: /a, {ebs}: {{Size: 1000}}}}\n"
        f"  - {{Name: raid, MountDir: /raid, {ebs}: {{Size: 100, Raid: {{Type: 0, NumberOfVolumes: 4}}}}}}\n"
        f"  - {{Name: io, MountDir: /io, {ebs}: {{VolumeType: io2, Iops: 3000}}}}\n"
        "  - {Name: lustre, MountDir: /l, StorageType: FsxLustre, FsxLustreSettings: "
        "{StorageCapacity: 1200, DeploymentType: SCRATCH_2}}\n"
        "  - {Name: efs2, MountDir: /e, StorageType: Efs}\n"
    )
    items, prices = _items(login_nodes="1", overrides=str(file)), load_base().prices
    assert items["Ebs at /a"].usd == pytest.approx(1000 * prices.gp3_gb_month.usd)
    assert items["Ebs at /raid"].usd == pytest.approx(400 * prices.gp3_gb_month.usd)
    assert items["Ebs at /io"].usd_per_month is None
    assert items["FsxLustre at /l"].usd == pytest.approx(1200 * prices.fsx_scratch2_gb_month.usd)
    assert items["Efs at /e"].usd == 0
    assert items["login nodes more"].prices[0] == instance_hour("m6i.large")
    assert {"login nodes", *(f"load balancer of the login nodes{each}" for each in ("", " more"))} <= {*items}


def test_volumes_and_addresses_of_overrides_are_priced(tmp_path: Path) -> None:
    file, plain = tmp_path / "overrides.yaml", _items(public_access="off")["head node c5.4xlarge"]
    root = "LocalStorage: {RootVolume: {VolumeType: io2}}"
    file.write_text(f"HeadNode: {{Networking: {{ElasticIp: true}}, {root}}}")
    found = _items(public_access="off", overrides=str(file))["head node c5.4xlarge"]
    assert found.usd == pytest.approx(plain.usd + 0.005 * 730 - 128 * 0.08)
    assert (plain.note, found.note) == ("", "without the io2 volumes")


def test_the_default_is_head_node_lustre_and_nat() -> None:
    items = _items()
    assert list(items) == ["head node c5.4xlarge", "FSx for Lustre", "NAT gateway and its address"]
    # (0.68 + 0.005) x 730 h + 128 GiB x 0.08; 1200 GiB x 0.21; (0.045 + 0.005) x 730 h.
    assert [item.usd_per_month for item in items.values()] == pytest.approx([510.29, 252, 36.5])


def test_what_a_flag_adds_is_counted() -> None:
    for flags, what, usd in (
        ({"fsx_gib": "4800", "fsx_mbps_per_tib": "1000"}, "FSx for Lustre", 4800 * 0.6),
        ({"fsx_type": "scratch2"}, "FSx for Lustre", 1200 * 0.14),
        (
            {"endpoints": "private"},
            f"{len(INTERFACE_ENDPOINTS)} interface endpoints",
            len(INTERFACE_ENDPOINTS) * 0.01 * 730,
        ),
        ({"accounting": "new"}, "accounting database", 0.5 * 0.12 * 730),
        ({"efs_mibps": "100"}, "EFS at 100 MiB/s", 600),
        ({"login_nodes": "2"}, "login nodes", 2 * (0.192 + 0.005) * 730),
        ({"login_nodes": "2"}, "load balancer of the login nodes", (0.0225 + 0.005) * 730),
        ({"min_nodes": "2"}, "2 x p4d.24xlarge (min_nodes)", 2 * (21.96 * 730 + 256 * 0.08)),
        ({"head_root_gib": "1128"}, "head node c5.4xlarge", 510.29 + 80),
    ):
        assert _items(**flags)[what].usd_per_month == pytest.approx(usd)


def test_an_unknown_price_is_named() -> None:
    for flags, without in (
        ({"head_node_type": "c7i.8xlarge"}, "head node c7i.8xlarge, 128 GiB (price not in the catalog)"),
        ({"capacity": "spot", "min_nodes": "1"}, "1 x p4d.24xlarge (at the spot price)"),
        (
            {"capacity": "reservation:cr-0123456789abcdef0"},
            "the reservation cr-0123456789abcdef0 (billed whether used or not)",
        ),
    ):
        assert f"a day, without {without}:" in _said(**flags)


def test_what_is_brought_or_paid_is_not_counted() -> None:
    assert list(_items(fsx_id=FSX, **OWN_NETWORK)) == ["head node c5.4xlarge"]
    assert "p4d.24xlarge" not in _said(capacity="capacity-block:cr-0123456789abcdef0")


def test_it_says_how_sure_prices_are() -> None:
    said = _said(fsx_mbps_per_tib="250")
    assert "us-east-1, 2024-06-01 to 2026-08-01; your region may differ" in said
    assert "252  price unconfirmed" in said
    assert "unconfirmed" not in _said(fsx_mbps_per_tib="125")


def test_every_head_node_has_one_price() -> None:
    assert instance_hour(load_base().login_node.instance_type)
    for family in family_names():
        assert instance_hour(load_family(family).head_node_type)
    for name, offered in load_base().head_node.types.items():
        family = name.split(".")[0]
        if family in family_names() and name in load_family(family).sizes:
            assert load_family(family).sizes[name].usd_per_hour == offered.usd_per_hour


def test_synth_says_it_as_a_note() -> None:
    settings = read_settings({"min_nodes": "1"})
    found = advice(settings, config_before_deploy(settings))
    (said,) = (each for each in found if each.id == "idle-cost")
    assert not said.warns
    # In its report CDK keeps warnings only, and the CLI then shows no note at all.
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    assert context["@aws-cdk/core:annotationsInValidationReport"] is False
