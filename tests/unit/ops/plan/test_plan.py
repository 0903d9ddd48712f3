"""`trainctl plan`: what a deploy would change, by the real library's policies and the guards' own rules."""

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from ops.pcluster.dry_run import DryRun, Message
from ops.pcluster.update_policies import Config, Judge, ask_library
from ops.pcluster.update_policies import Refused as RefusedChange
from ops.plan.change import Change
from ops.plan.deployed import OWNER_TAG
from ops.plan.plan import Plan, read_plan
from ops.plan.render import show_plan
from ops.price.price_book import catalog_book
from tests.unit.ops.fake_account import READS, REGION, Account, FakeStack, Refused, stack_answers
from tests.unit.ops.jobs_head_node import job_line, slurm_answer
from training_cluster.cluster.bundle import bootstrap_budget_s
from training_cluster.cluster.config import render_cluster_config
from training_cluster.cluster.resource_ids import PLACEHOLDERS, ResourceIds, existing_database
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.flags.given import GIVEN_FLAGS, given_flags
from training_cluster.flags.settings import Settings
from training_cluster.network.guarded import guarded_network
from training_cluster.rules.context import read_settings
from training_cluster.stack_names import DEFAULT_CLUSTER, FORMER_DEFAULT
from training_cluster.storage.guarded import guarded_storage

JOBS = job_line(id_="17", user="ana", name="gpt2") + job_line(id_="18", user="bo", nodes=1, name="my job")
BOUNDARY = "arn:aws:iam::123456789012:policy/boundary"
CASES: tuple[tuple[dict[str, Any], dict[str, Any], str, str], ...] = (
    ({}, {"nodes": "4"}, "nodes", "live"),
    ({"nodes": "4"}, {}, "nodes", "fleet stops"),
    ({"family": "g5"}, {"family": "g5", "instance_type": "g5.12xlarge"}, "instance_type", "fleet stops"),
    ({}, {"cpu_queue": "on"}, "cpu_queue", "live"),
    ({}, {"capacity": "spot"}, "capacity", "fleet stops"),
    ({}, {"capacity": "spot", "on_busy": "drain"}, "capacity", "rolling"),
    ({}, {"family": "p5"}, "family", "fleet stops"),
    ({}, {"head_node_type": "m6i.8xlarge"}, "head_node_type", "impossible"),
    ({}, {"os": "ubuntu2204"}, "os", "impossible"),
    ({}, {"home": "efs"}, "home", "impossible"),
    ({}, {"permissions_boundary": BOUNDARY}, "permissions_boundary", "impossible"),
    ({"permissions_boundary": BOUNDARY}, {}, "permissions_boundary", "impossible"),
    ({}, {"login_nodes": "1"}, "login_nodes", "live"),
    ({"login_nodes": "1"}, {}, "login_nodes", "impossible"),
    ({}, {"key_name": "mine"}, "key_name", "impossible"),
    ({}, {"budget_usd": "500", "alarm_email": "a@example.com"}, "budget_usd", "live"),
    # Neither goes without the others: a budget wants an address, a size its family.
    ({}, {"budget_usd": "500", "alarm_email": "a@example.com", "capacity": "spot"}, "budget_usd", "live"),
    ({}, {"family": "g5", "instance_type": "g5.12xlarge"}, "instance_type", "fleet stops"),
    ({}, {"endpoints": "private"}, "endpoints", "live"),
    ({}, {"fsx_gib": "2400"}, "fsx_gib", "live"),
    ({"fsx_gib": "2400"}, {}, "fsx_gib", "impossible"),
    ({}, {"fsx_type": "scratch2"}, "fsx_type", "impossible"),
    ({}, {"fsx_id": "fs-0123456789abcdef0"}, "fsx_id", "impossible"),
    ({}, {"zone": "use1-az1"}, "zone", "impossible"),
)
"""Flags before, flags now, and what becomes of one of them."""
OTHER = "arn:aws:cloudformation:us-east-1:123456789012:stack/Somebody/1"


GROUP, HEAD_NODE = "TrainingClusterStack-PlacementGroup-x", "i-0123456789abcdef0"
POLICIES = {
    construct: f"arn:aws:iam::123456789012:policy/parallelcluster-{DEFAULT_CLUSTER}-{construct}-us-east-1"
    for construct in ResourceIds.own_policies().values()
}
BUNDLE_SHA256 = PLACEHOLDERS.bundle_sha256
_OUTPUTS: dict[str, dict[str, str]] = {
    "TrainingCluster-Network": {
        "VpcId": "vpc-0123456789abcdef0",
        "PublicSubnetId": PLACEHOLDERS.public_subnet_id,
        "PrivateSubnetId": PLACEHOLDERS.private_subnet_id,
        "NodeSecurityGroupId": PLACEHOLDERS.node_security_group_id,
        "ZoneId": "use1-az4",
        "ZoneName": "us-east-1a",
    },
    "TrainingCluster-Storage": {
        "BucketName": "bucket",
        "FileSystemId": PLACEHOLDERS.lustre_id,
        "EfsId": PLACEHOLDERS.efs_id,
    },
    "TrainingClusterStack": {"HeadNodeInstanceId": HEAD_NODE},
}


def _arn(name: str) -> str:
    return f"arn:aws:cloudformation:{REGION}:123456789012:stack/{name}/1"


def stored_config(**flags: str) -> dict[str, Any]:
    """Return the stored config of a cluster that was deployed with these flags, by another bundle."""
    settings = read_settings(flags)
    name = settings.cluster_name
    ids = replace(
        PLACEHOLDERS,
        region=REGION,
        key_name=settings.key_name or f"{name}-key",
        placement_group_name=GROUP,
        bootstrap_budget_s=bootstrap_budget_s(settings),
        image_id=settings.node_image if settings.node_image.startswith("ami-") else None,
        database=existing_database(settings),
        **{field: POLICIES[construct] for field, construct in ResourceIds.own_policies().items()},  # type: ignore[arg-type]
    )
    config = render_cluster_config(settings=settings, ids=ids)
    config["Tags"].append({"Key": OWNER_TAG, "Value": _arn("TrainingClusterStack")})
    return config


def templates_of(settings: Settings) -> dict[str, dict[str, Any]]:
    """Return the parts of our templates that the plan reads; test_plan_parts.py compares the real ones."""
    network = {"vpc_id": {"Fn::ImportValue": "VpcId"}}
    kept = {
        "TrainingCluster-Network": guarded_network(settings),
        "TrainingCluster-Storage": guarded_storage(
            settings, vpc_id="", subnet_id="", node_security_group_id=""
        ),
    }
    found: dict[str, dict[str, Any]] = {}
    for name, values in kept.items():
        told = {flag: dict[str, Any](value.as_property()) for flag, value in values.items()}
        if name == "TrainingCluster-Storage" and "vpc_id" in told:
            told["vpc_id"]["value"] = network["vpc_id"]
        found[name] = {"Resources": {"Guard": {"Type": "Custom::Guard", "Properties": {"Values": told}}}}
    found[settings.stack_name] = {
        "Description": f"Training Cluster: the cluster {settings.cluster_name}, ",
        "Metadata": {GIVEN_FLAGS: given_flags(settings)},
        "Resources": {},
    }
    return found


def deployed(
    *,
    running: int = 0,
    jobs: str = "",
    status: str = "UPDATE_COMPLETE",
    owner: str = "",
    version: str = PCLUSTER_VERSION,
    without: tuple[str, ...] = (),
    **flags: str,
) -> Account:
    """Return an account with our stacks as these flags make them, and a cluster.

    Args:
        running: compute nodes that run now.
        jobs: lines of squeue.
        status: of ParallelCluster's stack.
        without: names of stacks that are not there.
    """
    settings = read_settings(flags)
    templates, config = templates_of(settings), stored_config(**flags)
    own = {
        f"{construct}7EE66815": (type_, physical)
        for type_, made in (
            ("AWS::IAM::ManagedPolicy", POLICIES),
            ("AWS::EC2::PlacementGroup", {"PlacementGroup": GROUP}),
        )
        for construct, physical in made.items()
        if f'"{physical}"' in json.dumps(config)
    }
    stacks = {
        name: FakeStack(
            template=template,
            outputs=_OUTPUTS.get(name, {}),
            resources=own if name == "TrainingClusterStack" else {},
            members={"StackId": _arn(name), "Description": template.get("Description", "Training Cluster")},
        )
        for name, template in templates.items()
    }
    tags = {OWNER_TAG: owner or _arn("TrainingClusterStack"), "parallelcluster:version": version}
    parameters = {
        "ResourcesS3Bucket": "parallelcluster-x",
        "ArtifactS3RootDirectory": "parallelcluster/x",
        "ConfigVersion": "v2",
    }
    stacks[settings.cluster_name] = FakeStack(
        members={
            "StackStatus": status,
            "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
            "Parameters": [
                {"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()
            ],
        }
    )

    def read(asked: dict[str, Any]) -> Any:
        assert (asked["Key"], asked["VersionId"]) == ("parallelcluster/x/configs/cluster-config.yaml", "v2")
        return {"Body": io.BytesIO(yaml.safe_dump(config).encode())}

    output = slurm_answer("squeue", jobs)
    return Account(
        {
            **stack_answers({name: each for name, each in stacks.items() if name not in without}),
            "GetObject": read,
            "DescribeInstances": {"Reservations": [{"Instances": [{"InstanceId": HEAD_NODE}] * running}]},
            "SendCommand": {"Command": {"CommandId": "0" * 36}},
            "GetCommandInvocation": {"Status": "Success", "StandardOutputContent": output},
            "GetParameter": Refused("ParameterNotFound"),
        }
    )


class Library:
    """The real one, asked once for all cases: to load it takes a second."""

    def __init__(self) -> None:
        self._answers: dict[str, RefusedChange] = {}

    def __call__(self, pairs: Sequence[tuple[Config, Config]]) -> list[RefusedChange]:
        new = [pair for pair in pairs if json.dumps(pair) not in self._answers]
        if new:
            answers = ask_library(new)
            self._answers |= {json.dumps(pair): said for pair, said in zip(new, answers, strict=True)}
        return [self._answers[json.dumps(pair)] for pair in pairs]


LIBRARY = Library()


def takes_all(pairs: Sequence[tuple[Config, Config]]) -> list[RefusedChange]:
    """Refuse nothing, where no verdict is looked at."""
    return [RefusedChange()] * len(pairs)


@pytest.fixture(scope="module", autouse=True)
def _no_pause() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ops.account.head_node.time.sleep", lambda _: None)
        yield


@pytest.fixture(scope="module", autouse=True)
def _ask_at_once(_no_pause: None) -> None:
    asked: list[tuple[Config, Config]] = []

    def note(pairs: Sequence[tuple[Config, Config]]) -> list[RefusedChange]:
        asked.extend(pairs)
        return takes_all(pairs)

    for before, after, _, _ in CASES:
        plan(deployed(**before), judge=note, **after)
    LIBRARY(asked)


def plan(account: Account, *, dry_run: Any = None, judge: Judge = LIBRARY, **flags: str) -> Plan:
    return read_plan(
        read_settings(flags), account.client, judge=judge, prices=lambda _: catalog_book(), dry_run=dry_run
    )


def changes(account: Account, **flags: Any) -> dict[str, Change]:
    """By what they change; the scripts apart, which a flag may change, too."""
    return {each.what: each for each in plan(account, **flags).changes if each.what != "scripts"}


def shown(found: Plan) -> str:
    with open("/dev/null", "w") as nowhere:  # noqa: PTH123
        console = Console(record=True, width=200, soft_wrap=True, file=nowhere)
        show_plan(found, console)
    return console.export_text()


def test_unchanged_flags_change_only_the_scripts() -> None:
    account = deployed(nodes="3")
    found = plan(account, nodes="3")
    assert [(each.what, each.verdict) for each in found.changes] == [("scripts", "live")]
    writes = {each for each in account.asked if not each.startswith(READS)}
    assert writes <= {"SendCommand"}, "a plan only reads"
    assert (found.cost_before, found.state) == (found.cost_after, "update")


def test_a_flag_is_judged_as_the_deploy_would() -> None:
    for before, after, what, verdict in CASES:
        found = changes(deployed(**before), **after)
        assert found[what].verdict == verdict, found[what]
        assert set(found) <= {what, *after, *before}, "no other change is told"
        assert bool(found[what].mend) == (verdict == "impossible")


def test_a_change_names_flag_values_and_their_cost() -> None:
    found = plan(deployed(), nodes="4")
    (change,) = (each for each in found.changes if each.what == "nodes")
    assert (change.old, change.new) == ("2", "4")
    assert found.cost_before and found.cost_after.nodes == 4
    more = found.cost_after.full_usd_per_hour - found.cost_before.full_usd_per_hour
    assert more == pytest.approx(2 * (21.96 + 256 * 0.08 / 730))
    assert found.cost_after.idle_usd_per_month == pytest.approx(found.cost_before.idle_usd_per_month)


def test_while_jobs_run_on_busy_decides() -> None:
    for flags, verdict, fate in (
        ({"capacity": "spot"}, "not while nodes run", "continue, since the deploy would fail"),
        ({"capacity": "spot", "on_busy": "drain"}, "rolling", "finish first"),
        ({"capacity": "spot", "on_busy": "stop"}, "fleet stops", "end"),
        (
            {"min_nodes": "1", "on_busy": "drain"},
            "not while nodes run",
            "continue, since the deploy would fail",
        ),
        ({"nodes": "4"}, "live", "continue"),
    ):
        found = plan(deployed(running=2, jobs=JOBS), **dict[str, Any](flags))
        (change,) = (each for each in found.changes if each.what in flags)
        assert change.verdict == verdict
        assert ("on_busy=fail" in change.why) == (fate.startswith("continue,") and "on_busy" not in flags)
        text = shown(found)
        assert f"Jobs: 2 run, and {fate}:" in text
        assert "17 gpt2 (ana, 2 node(s), 1:00)" in text
        assert "18 my job (bo, 1 node(s), 1:00)" in text
        assert bool(found.refused) == (verdict == "not while nodes run")


def test_a_live_change_says_what_starts_again() -> None:
    (change,) = (each for each in plan(deployed(), topology="auto").changes if each.what == "topology")
    assert (change.verdict, "slurmctld and slurmd start again" in change.why) == ("live", True)


def test_a_fleet_stop_applies_to_drainable_changes_too() -> None:
    flags: dict[str, Any] = {"capacity": "spot", "min_nodes": "1", "on_busy": "drain"}
    found = changes(deployed(running=1), **flags)
    assert {each.verdict for each in found.values()} == {"not while nodes run"}


def test_a_refusal_names_values_and_a_safe_way() -> None:
    found = plan(deployed(fsx_gib="2400"), fsx_gib="1200")
    text = shown(found)
    assert "impossible: fsx_gib 2400 -> 1200: is not possible: it can only grow." in text
    assert "keep -c fsx_gib=2400, or more" in text
    assert "1 change(s) are refused" in text


def test_two_changes_of_storage_are_refused_together() -> None:
    found = changes(deployed(), fsx_gib="2400", efs_mibps="100")
    assert found["fsx_gib"].verdict == "impossible"
    assert "efs_mibps" in found["fsx_gib"].why + found["fsx_gib"].mend


def test_storage_changed_by_another_cluster_is_no_change() -> None:
    account = deployed()
    changed = deployed(fsx_gib="4800")
    own = account.answers["GetTemplate"]

    def template(asked: dict[str, Any]) -> Any:
        return (changed.answers["GetTemplate"] if asked["StackName"] == "TrainingCluster-Storage" else own)(
            asked
        )

    account.answers["GetTemplate"] = template
    found = plan(account, fsx_gib="4800", judge=takes_all)
    assert ([each.what for each in found.changes], found.cost_before) == (["scripts"], found.cost_after)


@pytest.mark.parametrize("flags", [{}, {"queue_name": "train"}], ids=["another", "the-flags-queue"])
def test_former_cost_is_of_the_former_queues(flags: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    flags = flags | {"queues": str(file)}
    file.write_text("train: {instance_types: [g5.12xlarge], nodes: 2}")
    account, same = deployed(**flags), plan(deployed(**flags), judge=takes_all, **flags)
    file.write_text("train: {instance_types: [g5.12xlarge], nodes: 20}")
    found = plan(account, judge=takes_all, **flags)
    assert found.cost_before and same.cost_before
    assert found.cost_before.full_usd_per_hour == same.cost_before.full_usd_per_hour
    assert found.cost_after.full_usd_per_hour > found.cost_before.full_usd_per_hour
    assert "unknown" not in shown(found)


def test_without_former_flags_config_keys_are_judged() -> None:
    account = deployed()
    account.answers["GetTemplate"] = {"TemplateBody": "{}"}
    found = plan(account, nodes="4", head_node_type="m6i.8xlarge")
    verdicts = {each.what: each.verdict for each in found.changes}
    assert verdicts["Scheduling.SlurmQueues[gpu].ComputeResources[p4d].MaxCount"] == "live"
    assert verdicts["HeadNode.InstanceType"] == "impossible"
    assert found.cost_before is None
    assert "The former cost is unknown: the last deploy was by a release" in shown(found)


def test_without_a_cluster_all_is_new() -> None:
    account = deployed(
        without=(
            DEFAULT_CLUSTER,
            "TrainingClusterStack",
            "TrainingCluster-Network",
            "TrainingCluster-Storage",
        )
    )
    found = plan(account, family="p3dn")
    assert (found.state, found.changes, found.running) == ("new", (), None)
    assert found.minutes == 10 + 20 + 90, "Lustre, head node, image"
    assert found.cost_before is None
    text = shown(found)
    assert "the cluster does not exist yet; a deploy takes about 120 minutes" in text
    assert "unknown" not in text
    account = deployed(without=(DEFAULT_CLUSTER, "TrainingClusterStack"))
    found = plan(account, fsx_gib="2400", fsx_type="scratch2")
    assert {each.what: each.verdict for each in found.refused} == {"fsx_type": "impossible"}
    assert found.minutes == 20


def test_a_cluster_that_never_stood_is_replaced(tmp_path: Path) -> None:
    found = plan(deployed(status="CREATE_FAILED"), head_node_type="m6i.8xlarge")
    assert (found.state, found.changes) == ("replaced", ())
    assert "creation of this cluster failed" in shown(found)
    users = tmp_path / "users.yaml"  # nothing enforces the limit without accounting
    users.write_text("accounts: {nlp: {gid: 6001, max_gpu_hours: 9}}\nusers: {alice: {uid: 5001}}\n")
    account = deployed(status="CREATE_FAILED", users=str(users))
    assert plan(account, users=str(users), accounting="new").state == "replaced"


def test_another_stack_name_or_version_is_impossible() -> None:
    found = plan(deployed(owner=OTHER))
    assert found.state == "foreign"
    (refused,) = found.refused
    assert f"-c cluster_name={DEFAULT_CLUSTER}-2" in refused.mend
    (refused,) = plan(deployed(cluster_name=FORMER_DEFAULT)).refused
    assert (refused.what, refused.old, refused.new) == ("cluster_name", FORMER_DEFAULT, DEFAULT_CLUSTER)
    assert refused.mend.startswith(f"-c cluster_name={FORMER_DEFAULT}, or")
    (refused,) = plan(deployed(version="3.15.0")).refused
    assert (refused.what, refused.old) == ("pcluster_version", "3.15.0")


def test_a_silent_head_node_leaves_jobs_unknown() -> None:
    account = deployed(running=3)
    account.answers["SendCommand"] = Refused("InvalidInstanceId")
    text = shown(plan(account, nodes="4"))
    assert f"Jobs: not known (The head node i-0123456789abcdef0 of {DEFAULT_CLUSTER} does not answer" in text
    assert "3 compute node(s) run" in text


def test_the_validators_errors_are_told() -> None:
    asked = []

    def dry_run(name: str, config: Any) -> DryRun:
        asked.append((name, config["Scheduling"]["SlurmQueues"][0]["ComputeResources"][0]["MaxCount"]))
        error = Message(level="ERROR", validator="SubnetsValidator", text="no such subnet")
        return DryRun(exists=True, messages=(error,), refusal="busy")

    refused = [(each.what, each.why) for each in plan(deployed(), nodes="4", dry_run=dry_run).refused]
    assert refused == [("SubnetsValidator", "no such subnet"), ("ParallelCluster", "busy")]
    assert asked == [(DEFAULT_CLUSTER, 4)]


def test_validators_are_not_asked_about_missing_parts() -> None:
    def dry_run(*_: Any) -> DryRun:
        raise AssertionError

    found = plan(deployed(), login_nodes="1", image="build", dry_run=dry_run, judge=takes_all)
    assert found.not_judged == ("the login policy", "the image")
    assert "were not asked: the deploy makes the login policy, the image first" in shown(found)
