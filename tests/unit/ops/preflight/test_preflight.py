"""`trainctl preflight`: what several checks have in common, the report, and flags of the CDK's files."""

import io
import json
import re
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from rich.console import Console

from ops.context import read_context
from ops.preflight.account.credentials import LEAST_BOOTSTRAP
from ops.preflight.checks import report, run_checks
from ops.preflight.finding import Finding
from tests.unit.ops.jobs_head_node import Call
from tests.unit.ops.own_account import TYPE, OwnAccount
from tests.unit.ops.preflight.test_checks import (
    BUDGET,
    KMS_KEY,
    SPOT,
    bad,
    encrypted,
    findings,
    offers,
    reservation,
    subnet,
)
from training_cluster.catalog.families import family_names, load_base, load_family
from training_cluster.flags.settings import Settings
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings


def test_a_node_with_efa_takes_only_one_address(own: OwnAccount) -> None:
    """Eight p5 nodes, of 32 cards each, in a subnet of 251 addresses."""
    subnet("private", AvailableIpAddressCount=8 + 64)(own)
    flags = own.flags | {"family": "p5", "nodes": "8", "capacity": "ondemand"}
    found = {each.check: each for each in findings(own, flags)}
    assert found["private subnet: free addresses"].verdict == "ok"


def _of_the_zone(own: OwnAccount, **flags: str) -> Finding:
    (found,) = (each for each in findings(own, flags) if each.check.startswith("zone with "))
    return found


def test_a_deploy_chooses_a_zone_with_all_types(own: OwnAccount) -> None:
    offers(TYPE, without=("use1-az2", "use1-az3", "use1-az5", "use1-az6"))(own)
    found = _of_the_zone(own)
    assert found.found == "a deploy takes use1-az1 (us-east-1b); others for -c zone=...: use1-az4"
    problem = _of_the_zone(own, zone="use1-az6")
    assert "zone=use1-az6 is use1-az6 (us-east-1a), which does not offer p4d.24xlarge." in problem.found
    assert problem.mend == "-c zone=use1-az1"


def test_existing_stacks_need_no_zone_and_no_quotas(own: OwnAccount) -> None:
    own.deploy_network()
    own.deploy_storage()
    checks = {each.check for each in findings(own, {})} - {"Lustre: checkpoints"}
    assert not {each for each in checks if "VPC" in each or "NAT" in each or "Lustre" in each}
    assert _of_the_zone(own).found == "use1-az6 (us-east-1a), the zone of the network"
    problem = _of_the_zone(own, zone="use1-az1")
    assert "The network stays in use1-az6 (us-east-1a) for good" in problem.found
    assert "Queues in other zones" in problem.mend


def _queues(folder: Path, text: str) -> dict[str, str]:
    file = folder / "queues.yaml"
    file.write_text(text)
    return {"queues": str(file)}


@pytest.mark.parametrize(("place", "is_good"), [("use1-az6", True), ("use1-az1", False)])
def test_a_queue_with_subnets_has_their_zone(
    own: OwnAccount, tmp_path: Path, place: str, is_good: bool
) -> None:
    reservation(AvailabilityZoneId=place)(own)
    block = f"{{family: p4d, capacity: 'reservation:{own.reservation}', subnet_ids: {own.network.private}}}"
    own.deploy_network()
    found = {e.check: e for e in findings(own, {"family": "m6i", **_queues(tmp_path, f"block: {block}")})}
    assert (found["reservation: zone"].verdict == "ok") is is_good
    zone = next(each for check, each in found.items() if check.startswith("zone with "))
    assert zone.verdict == "ok"


def test_the_database_has_two_zones(own: OwnAccount) -> None:
    def of(*names: str) -> Finding:
        zones = [{"AvailabilityZones": [{"Name": name} for name in names]}]
        own.account.answers["DescribeOrderableDBInstanceOptions"] = {"OrderableDBInstanceOptions": zones}
        checks = {each.check: each for each in findings(own, {"family": "m6i", "accounting": "new"})}
        return checks["zones of the accounting database"]

    assert of("us-east-1b", "us-east-1f").found == "us-east-1b, us-east-1f", "the other one has databases"
    assert of("us-east-1f").found == "RDS does not offer it in us-east-1b"
    assert of("us-east-1f").verdict == "warning"


def test_a_queues_reservation_decides_the_zone(own: OwnAccount, tmp_path: Path) -> None:
    """Before the network and Lustre exist; the deploy decides with the same function."""
    reservation(AvailabilityZoneId="use1-az4")(own)
    flags = {"family": "m6i"} | _queues(
        tmp_path, f"a: {{family: p4d, capacity: 'reservation:{own.reservation}'}}"
    )
    found = next(each for each in findings(own, flags) if each.check.startswith("zone with "))
    assert found.found == "a deploy takes use1-az4 (us-east-1d); others for -c zone=...: no other"
    own.deploy_network()
    found = next(each for each in findings(own, flags) if each.check.startswith("zone with "))
    assert f"the reservation {own.reservation} of queue a is in use1-az4 (us-east-1d)" in found.found


def test_closed_lustre_without_our_group_is_a_warning(own: OwnAccount) -> None:
    """Its id is known only after NetworkStack; the rules to type come with it."""
    own.amend_all("DescribeSecurityGroups", "SecurityGroups", IpPermissions=[], IpPermissionsEgress=[])
    flags = {key: value for key, value in own.flags.items() if key.endswith(("_id", "capacity"))}
    del flags["security_group_id"], flags["efs_id"]
    (warning,) = bad(own, flags)
    assert warning.verdict == "warning"
    assert "npx cdk deploy NetworkStack" in warning.mend
    own.deploy_network()
    (problem,) = bad(own, flags)
    assert problem.verdict == "problem"
    rule = f"'IpProtocol=tcp,FromPort=988,ToPort=988,UserIdGroupPairs=[{{GroupId={own.nodes}}}]' "
    for direction in ("ingress", "egress"):
        command = f"authorize-security-group-{direction} --group-id {own.lustre_group} --ip-permissions "
        assert command + rule in problem.mend


def test_storage_outside_the_new_vpc_is_a_problem(own: OwnAccount) -> None:
    (problem,) = (each for each in bad(own, {"fsx_id": own.lustre}) if each.verdict == "problem")
    assert problem.check == "Lustre: in the nodes' VPC"
    assert f"-c vpc_id={own.network.vpc}" in problem.mend


def test_brackets_and_stars_in_commands_are_quoted(own: OwnAccount) -> None:
    own.amend_all("DescribeSecurityGroups", "SecurityGroups", IpPermissions=[], IpPermissionsEgress=[])
    own.amend("DescribeDataRepositoryAssociations", lambda said: said["Associations"].clear())
    encrypted(KMS_KEY)(own)
    typed = [line for e in bad(own, own.flags) for line in e.mend.splitlines() if line.startswith("aws ")]
    assert len(typed) >= 7
    for line in typed:
        assert not re.search(r"[][{}*?$]", re.sub(r"'[^']*'", "", line)), line


def test_refused_quotas_hide_no_other_check(own: OwnAccount) -> None:
    own.refuse(
        "GetServiceQuota",
        "AccessDeniedException",
        "User: x is not authorized to perform: servicequotas:GetServiceQuota",
    )
    warned = [each for each in findings(own, {}) if each.verdict != "ok"]
    things = ("vCPUs", "VPCs", "elastic IP addresses", "NAT gateways", "Lustre", "network interfaces")
    assert {each.check for each in warned} == {f"quota of {each}" for each in (*things, "gp3 volumes")}
    assert {e.found for e in warned} == {"not checked: these credentials lack servicequotas:GetServiceQuota"}


def test_credentials_that_aws_does_not_take_end_it(own: OwnAccount) -> None:
    own.refuse("GetCallerIdentity", "ExpiredToken", "expired")
    with pytest.raises(ClientError, match="ExpiredToken"):
        findings(own, {})


def test_an_unknown_spot_quota_is_a_warning(own: OwnAccount) -> None:
    warnings = [each for each in bad(own, {"family": "p6-b200", **SPOT}) if "quota" in each.check]
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


def test_an_invalid_cluster_config_is_a_problem(own: OwnAccount, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Settings) -> None:
        raise ConfigurationError("Scheduling: no such key")

    monkeypatch.setattr("ops.preflight.config.checked_config", refuse)
    (problem,) = bad(own, {})
    assert (problem.check, problem.found) == ("cluster config: schema and rules", "Scheduling: no such key")


def test_every_check_is_told_before_it_begins(own: OwnAccount) -> None:
    told: list[str] = []
    run_checks(read_settings({}), own.client, starts=told.append)
    assert (told[:2], told[-1]) == (["credentials", "stacks and network"], "cluster config")


def test_the_least_bootstrap_is_what_the_cdk_requires(tmp_path: Path) -> None:
    from aws_cdk import App, CfnResource, Stack  # noqa: PLC0415 - seconds, for one test

    app = App(outdir=str(tmp_path))
    CfnResource(Stack(app, "Some"), "Topic", type="AWS::SNS::Topic")
    app.synth()
    asked = [
        each["properties"]["requiresBootstrapStackVersion"]
        for each in json.loads((tmp_path / "manifest.json").read_text())["artifacts"].values()
        if each["type"] == "aws:cloudformation:stack"
    ]
    assert asked == [LEAST_BOOTSTRAP]


def test_bootstrap_is_looked_for_by_the_apps_qualifier(
    own: OwnAccount, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.account.session.account_clients", lambda: own.client)

    def found() -> dict[str, str]:
        _, out, _ = call("preflight", "-c", "@aws-cdk/core:bootstrapQualifier=team1", "--json")
        (bootstrap,) = (e for e in json.loads(out)["findings"] if e["check"].startswith("CDK bootstrap"))
        return dict(bootstrap)

    assert found()["mend"].endswith(" --qualifier team1 --toolkit-stack-name CDKToolkit-team1")
    ssm, name = own.client("ssm"), "/cdk-bootstrap/team1/version"
    ssm.put_parameter(Name=name, Value="27", Type="String")
    own.later(ssm.delete_parameter, Name=name)
    assert found()["verdict"] == "ok"


def test_a_budget_unsupported_by_cloudformation_is_a_problem(
    own: OwnAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    own.account.answers["DescribeBudgets"] = {"Budgets": []}
    monkeypatch.setattr("ops.preflight.account.name_conflicts.REGIONS_WITHOUT_BUDGETS", ("us-east-1",))
    (problem,) = bad(own, BUDGET)
    assert (problem.check, problem.verdict) == ("budget_usd in us-east-1", "problem")
    assert problem.found == "CloudFormation has no budgets here"


def test_a_command_stays_whole_below_the_table() -> None:
    command = "aws " + "x" * 200
    said = io.StringIO()
    found = Finding(check="a", found="b", verdict="problem", mend=command)
    assert report([found], Console(file=said, width=60, soft_wrap=True)) == 1
    assert f"  type:   {command}\n" in said.getvalue()


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
