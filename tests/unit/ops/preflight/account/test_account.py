"""`trainctl preflight`: what it asks of an account, and what it does where AWS gives no answer."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from ops.__main__ import main
from ops.preflight.account.credentials import LEAST_BOOTSTRAP
from ops.preflight.checks import run_checks
from ops.preflight.finding import Finding
from tests.unit.ops.fake_account import Refused
from tests.unit.ops.preflight.preflight_account import (
    ADDRESSES,
    DAY,
    LUSTRE,
    NATS,
    RESERVATION,
    STANDARD,
    VPCS,
    P,
    instance,
    now,
)
from tests.unit.ops.preflight.preflight_network import PRIVATE, Network, bad, findings
from training_cluster.catalog.families import family_names, load_base, load_family
from training_cluster.flags.settings import Settings
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings

RESERVED = {"capacity": f"reservation:{RESERVATION}"}
BLOCK = {"capacity": f"capacity-block:{RESERVATION}"}
ON_DEMAND_P = "quota: Running On-Demand P instances"
ON_DEMAND_STANDARD = "quota: Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances"


def test_without_service_quotas_every_other_check_still_speaks() -> None:
    """The local AWS has no Service Quotas; a real account may not let everybody ask."""
    network = Network()
    network.refused["GetServiceQuota"] = Refused(
        "AccessDeniedException", "User: x is not authorized to perform: servicequotas:GetServiceQuota"
    )
    found = findings(network)
    warned = [each for each in found if each.verdict != "ok"]
    assert {each.check for each in warned} == {
        *("quota of vCPUs", "quota of VPCs", "quota of elastic IP addresses"),
        *("quota of NAT gateways", "quota of Lustre", "quota of network interfaces", "quota of gp3 volumes"),
    }
    assert {each.found for each in warned} == {
        "not checked: these credentials lack servicequotas:GetServiceQuota"
    }
    assert {"credentials", "official image", "cluster config: schema and rules"} <= {e.check for e in found}


def test_credentials_that_aws_does_not_take_end_it() -> None:
    network = Network()
    network.refused["GetCallerIdentity"] = Refused("ExpiredToken", "expired")
    with pytest.raises(ClientError, match="ExpiredToken"):
        findings(network)


def test_capacity_blocks_and_reservations_count_against_no_quota() -> None:
    network = Network()
    network.quotas[P] = 0
    network.instances = [instance("p4d.24xlarge", lifecycle="capacity-block")]
    assert bad(network, **RESERVED) == []
    network.reservation |= {"ReservationType": "capacity-block", "EndDate": now() + DAY}
    assert bad(network, **BLOCK) == []


def test_a_quota_never_changed_is_the_aws_default() -> None:
    network = Network()
    del network.quotas[P]
    network.default_quotas[P] = 191
    (problem,) = bad(network)
    assert problem.found == "191, of which 0 used by others, 192 needed"


def test_an_unknown_spot_quota_is_a_warning() -> None:
    network = Network()
    network.offered["use1-az4"].append("p6-b200.48xlarge")
    warnings = [each for each in bad(network, family="p6-b200", capacity="spot") if "quota" in each.check]
    assert [each.check for each in warnings] == ["quota of vCPUs: p6-b200.48xlarge, spot"]


def test_every_type_counts_against_exactly_one_quota() -> None:
    base = load_base()
    bought = {
        (type_, kind)
        for name in family_names()
        for type_ in load_family(name).sizes
        for kind in load_family(name).capacity_of(type_)
        if kind in ("ondemand", "spot")
    } | {(type_, "ondemand") for type_ in base.head_node.types}
    counts = {
        (type_, kind): len([q for q in base.quotas.vcpus if q.capacity_type == kind and q.counts(type_)])
        for type_, kind in bought
    }
    assert {each for each, count in counts.items() if count != 1} == {
        ("p6-b200.48xlarge", "spot"),
        ("p6-b300.48xlarge", "spot"),
    }
    codes = [each.code for each in base.quotas.vcpus]
    assert len(codes) == len(set(codes))


def test_existing_network_and_storage_need_no_quotas() -> None:
    network = Network()
    network.network_stack = {"VpcId": "vpc-1", "PrivateSubnetId": PRIVATE}
    network.storage_stack = {"BucketName": "b", "FileSystemId": "fs-1", "EfsId": "fs-2"}
    checks = {each.check for each in findings(network)}
    assert not {each for each in checks if "VPC" in each or "NAT" in each or "Lustre" in each}
    assert ON_DEMAND_STANDARD in checks


def test_an_invalid_cluster_config_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object, __: Settings) -> None:
        raise ConfigurationError("Scheduling: no such key")

    monkeypatch.setattr("ops.preflight.config.check_cluster_config", refuse)
    (problem,) = bad(Network())
    assert (problem.check, problem.found) == ("cluster config: schema and rules", "Scheduling: no such key")


def test_every_check_is_told_before_it_begins() -> None:
    told: list[str] = []
    run_checks(read_settings({}), Network().account().client, starts=told.append)
    assert told[:2] == ["credentials", "stacks and network"]
    assert told[-1] == "cluster config"


def test_the_least_bootstrap_is_what_the_cdk_requires(synthesised_manifest: dict[str, Any]) -> None:
    asked = [
        each["properties"]["requiresBootstrapStackVersion"]
        for each in synthesised_manifest["artifacts"].values()
        if each["type"] == "aws:cloudformation:stack"
    ]
    assert set(asked) == {LEAST_BOOTSTRAP}


OWN_QUALIFIER = ("preflight", "-c", "@aws-cdk/core:bootstrapQualifier=team1", "--json")


def bootstrap_finding(
    network: Network, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> dict[str, str]:
    monkeypatch.setattr("ops.account.session.account_clients", lambda: network.account().client)
    monkeypatch.setattr("sys.argv", ["trainctl", *OWN_QUALIFIER])
    with pytest.raises(SystemExit):
        main()
    found = json.loads(capsys.readouterr().out)["findings"]
    return next(each for each in found if each["check"].startswith("CDK bootstrap"))


def test_bootstrap_is_looked_for_by_the_apps_qualifier(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    network = Network()
    network.parameters["/cdk-bootstrap/team1/version"] = "27"
    network.parameters.pop("/cdk-bootstrap/hnb659fds/version")
    assert bootstrap_finding(network, monkeypatch, capsys)["verdict"] == "ok"


def test_a_missing_qualified_bootstrap_gets_its_own_stack(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mend = bootstrap_finding(Network(), monkeypatch, capsys)["mend"]
    assert mend.endswith(" --qualifier team1 --toolkit-stack-name CDKToolkit-team1")


@pytest.fixture
def synthesised_manifest(tmp_path: Any) -> dict[str, Any]:
    """The cloud assembly of a stack by itself."""
    from aws_cdk import App, CfnResource, Stack  # noqa: PLC0415 - seconds, for one test

    app = App(outdir=str(tmp_path))
    CfnResource(Stack(app, "Some"), "Topic", type="AWS::SNS::Topic")
    app.synth()
    manifest: dict[str, Any] = json.loads((tmp_path / "manifest.json").read_text())
    return manifest


def test_problems_are_what_the_exit_code_counts() -> None:
    network = Network()
    network.quotas |= {P: 0, VPCS: 0, ADDRESSES: 0, NATS: 0, LUSTRE: 0, STANDARD: 0}
    problems: list[Finding] = bad(network)
    assert len(problems) == 6
    assert {each.verdict for each in problems} == {"problem"}
