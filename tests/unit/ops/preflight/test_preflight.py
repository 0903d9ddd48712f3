"""`trainctl preflight`: an own network is looked at before anything is deployed into it."""

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ops.context import read_context
from ops.preflight.finding import Finding
from ops.preflight.report import report
from tests.unit.ops.preflight.preflight_account import P
from tests.unit.ops.preflight.preflight_network import (
    IGW,
    NAT,
    OWN,
    PRIVATE,
    PUBLIC,
    VPC,
    Network,
    bad,
    findings,
)
from training_cluster.paths import ROOT
from training_cluster.problems import ConfigurationError

Change = Callable[[Network], Any]


def test_a_node_with_efa_takes_only_one_address() -> None:
    """Eight p5 nodes, of 32 cards each, in a subnet of 251 addresses."""
    network = Network()
    network.subnets[PRIVATE].update(AvailableIpAddressCount=8 + 64)
    found = {each.check: each for each in findings(network, **OWN, family="p5", nodes="8")}
    assert found["private subnet: free addresses"].verdict == "ok"


def test_a_subnet_without_table_has_the_main_one() -> None:
    network = Network()
    network.routes = {PUBLIC: [IGW], "main": [NAT]}
    network.s3_endpoint_of = ["main"]
    assert bad(network, **OWN) == []


def test_a_missing_vpc_is_one_problem() -> None:
    network = Network()
    network.vpcs = []
    found = findings(network, **OWN)
    assert [each.verdict for each in found if each.check == "VPC"] == ["problem"]
    assert not any("subnet:" in each.check for each in found)


def test_all_nodes_and_the_reserve_need_addresses() -> None:
    network = Network()
    network.subnets[PRIVATE]["AvailableIpAddressCount"] = needed = 10 + 4 + 64
    network.offered["use1-az4"].append("m6i.16xlarge")
    network.quotas[P] = 960
    flags = {**OWN, "nodes": "10", "cpu_queue": "on"}
    assert bad(network, **flags) == []
    network.subnets[PRIVATE]["AvailableIpAddressCount"] = needed - 1
    (short,) = bad(network, **flags)
    assert short.found == "77, of which a full cluster takes 78"


def _of_the_zone(network: Network, **flags: str) -> Finding:
    (found,) = (each for each in findings(network, **flags) if each.check.startswith("zone with "))
    return found


def test_without_own_network_the_deploy_chooses_the_zone() -> None:
    network = Network()
    network.offered["use1-az1"].append("p4d.24xlarge")
    found = _of_the_zone(network)
    assert (found.check, found.verdict) == ("zone with c5.4xlarge, p4d.24xlarge", "ok")
    assert found.found == ("a deploy takes use1-az1 (us-east-1a); others for -c zone=...: use1-az4")
    for zone in network.offered.values():
        zone.remove("c5.4xlarge")
    problem = _of_the_zone(network)
    assert problem.verdict == "problem"
    assert problem.found.startswith("No zone of us-east-1 offers all instance types (c5.4xlarge: none;")
    assert "another region" in problem.mend


def test_a_requested_zone_must_offer_each_type() -> None:
    problem = _of_the_zone(Network(), zone="use1-az1")
    assert problem.verdict == "problem"
    assert "zone=use1-az1 is use1-az1 (us-east-1a), which does not offer p4d.24xlarge." in problem.found
    assert problem.mend == "-c zone=use1-az4"


def test_an_existing_network_stack_decides_the_zone() -> None:
    network = Network()
    network.network_stack = {"VpcId": VPC, "PrivateSubnetId": PRIVATE}
    assert _of_the_zone(network).found == "use1-az4 (us-east-1d), the zone of the network"
    problem = _of_the_zone(network, zone="use1-az1")
    assert "The network stays in use1-az4 (us-east-1d) for good" in problem.found


def test_a_budget_unsupported_by_cloudformation_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    flags = {"budget_usd": "100", "alarm_email": "a@example.com"}
    assert bad(Network(), **flags) == []
    monkeypatch.setattr("ops.preflight.account.name_conflicts.REGIONS_WITHOUT_BUDGETS", ("us-east-1",))
    (problem,) = bad(Network(), **flags)
    assert (problem.check, problem.verdict) == ("budget_usd in us-east-1", "problem")


def _reported(*findings: Finding, width: int = 80) -> tuple[int, str]:
    console = Console(file=io.StringIO(), width=width, soft_wrap=True)
    code = report(findings, console)
    assert isinstance(console.file, io.StringIO)
    return code, console.file.getvalue()


@pytest.mark.slow
def test_network_stack_has_the_outputs_that_preflight_reads(
    synthesise: Callable[..., Any],
) -> None:
    outputs = synthesise()["NetworkStack"].to_json()["Outputs"]
    assert {"VpcId", "PublicSubnetId", "PrivateSubnetId", "NodeSecurityGroupId"} <= set(outputs)


def test_only_a_problem_makes_the_exit_code_1() -> None:
    warning = Finding(check="a", found="b", verdict="warning", mend="c")
    assert _reported(Finding(check="a", found="b"), warning)[0] == 0
    assert _reported(warning, Finding(check="a", found="b", verdict="problem", mend="c"))[0] == 1


def test_a_command_stays_whole_below_the_table() -> None:
    command = "aws " + "x" * 200
    _, shown = _reported(Finding(check="a", found="b", verdict="problem", mend=command), width=60)
    assert f"  type:   {command}\n" in shown


def test_flags_are_read_where_the_cdk_reads_them(tmp_path: Path) -> None:
    (tmp_path / "cdk.json").write_text('{"context": {"family": "p5", "nodes": 4, "os": "alinux2023"}}')
    (tmp_path / "cdk.context.json").write_text('{"nodes": 8, "home": "efs"}')
    (tmp_path / ".cdk.json").write_text('{"context": {"home": "ebs", "login_nodes": 1}}')
    context = read_context(["family=g5", "tags=a=b"], folder=tmp_path, home=tmp_path)
    assert context == {
        "family": "g5",
        "tags": "a=b",
        "nodes": 4,
        "os": "alinux2023",
        "home": "efs",
        "login_nodes": 1,
    }


@pytest.mark.parametrize("pair", ["family", "=p5"])
def test_a_flag_without_a_value_is_refused(pair: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is not FLAG=VALUE"):
        read_context([pair], folder=tmp_path, home=tmp_path)


def test_a_wrong_flag_is_refused_before_any_call(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ops", "preflight", "-c", "family=p55"],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert 'family=p55: no such instance family. Did you mean "p5"?' in done.stderr
    assert "Traceback" not in done.stderr
