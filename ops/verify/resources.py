"""Checks of the cluster's resources: head node, links to the bucket, alarms and dashboard."""

from __future__ import annotations

from typing import Any

from ops.account.clusters import Cluster
from ops.account.session import ClientOf
from ops.usage import OpsError
from ops.verify.check import Check
from training_cluster.stack_names import STORAGE_STACK

_SSH = 22


def _instance(cluster: Cluster, client: ClientOf) -> dict[str, Any]:
    if not cluster.head_node_id:
        raise OpsError("the stack has no head node")
    answer = client("ec2").describe_instances(InstanceIds=[cluster.head_node_id])
    found: dict[str, Any] = answer["Reservations"][0]["Instances"][0]
    return found


def _takes_imdsv2_alone(cluster: Cluster, client: ClientOf) -> tuple[bool, str]:
    tokens = _instance(cluster, client).get("MetadataOptions", {}).get("HttpTokens", "not set")
    return tokens == "required", f"HttpTokens: {tokens}"


def _has_no_public_ssh(cluster: Cluster, client: ClientOf) -> tuple[bool, str]:
    groups = [each["GroupId"] for each in _instance(cluster, client)["SecurityGroups"]]
    found = client("ec2").describe_security_groups(GroupIds=groups)["SecurityGroups"]
    public = [
        rule
        for group in found
        for rule in group["IpPermissions"]
        if (rule["IpProtocol"] == "-1" or rule.get("FromPort", 0) <= _SSH <= rule.get("ToPort", 0))
        and any(each["CidrIp"] == "0.0.0.0/0" for each in rule.get("IpRanges", []))
    ]
    return not public, f"{len(public)} rules that open port {_SSH} to all, in {len(found)} groups"


def _volumes_are_encrypted(cluster: Cluster, client: ClientOf) -> tuple[bool, str]:
    filters = [{"Name": "attachment.instance-id", "Values": [str(cluster.head_node_id)]}]
    volumes = client("ec2").describe_volumes(Filters=filters)["Volumes"]
    encrypted = sum(each["Encrypted"] for each in volumes)
    return bool(volumes) and encrypted == len(volumes), f"{encrypted} of {len(volumes)} volumes"


def _links_are_available(_cluster: Cluster, client: ClientOf) -> tuple[bool, str]:
    resources = client("cloudformation").describe_stack_resources(StackName=STORAGE_STACK)["StackResources"]
    type_ = "AWS::FSx::DataRepositoryAssociation"
    ids = [each["PhysicalResourceId"] for each in resources if each["ResourceType"] == type_]
    if not ids:
        return True, "no links: the file system is scratch or your own"
    answer = client("fsx").describe_data_repository_associations(AssociationIds=ids)
    states = sorted(each["Lifecycle"] for each in answer["Associations"])
    return set(states) == {"AVAILABLE"}, ", ".join(states)


def _alarms_are_quiet(cluster: Cluster, client: ClientOf) -> tuple[bool, str]:
    prefix = f"TrainingCluster_{cluster.name}_"
    alarms = client("cloudwatch").describe_alarms(AlarmNamePrefix=prefix)["MetricAlarms"]
    ringing = sorted(
        each["AlarmName"].removeprefix(prefix) for each in alarms if each["StateValue"] == "ALARM"
    )
    shown = f"{len(alarms)} alarms" + (f"; in alarm: {', '.join(ringing)}" if ringing else "")
    return bool(alarms) and not ringing, shown


CHECKS = (
    Check(
        id="imdsv2",
        claim="The head node takes version 2 of the instance metadata service alone.",
        expected="HttpTokens: required",
        not_in_rehearsal="The local EC2 ignores the metadata options of launch templates.",
        look=_takes_imdsv2_alone,
        only_on_aws=True,
    ),
    Check(
        id="no-public-ssh",
        claim="Nobody on the internet reaches the head node's SSH, unless ssh_from_anywhere says so.",
        expected="no rule for 0.0.0.0/0",
        not_in_rehearsal="No packet is sent.",
        look=_has_no_public_ssh,
    ),
    Check(
        id="encrypted-volumes",
        claim="The head node's volumes are encrypted.",
        expected="all of them",
        not_in_rehearsal="The key, and the rights to it.",
        look=_volumes_are_encrypted,
        only_on_aws=True,
    ),
    Check(
        id="bucket-links",
        claim="Lustre's links to the bucket are available.",
        expected="AVAILABLE",
        not_in_rehearsal="That files are copied: a link is a record.",
        look=_links_are_available,
    ),
    Check(
        id="alarms",
        claim="The cluster's alarms exist, and none is in alarm.",
        expected="at least one alarm, all quiet",
        not_in_rehearsal="Metrics: nothing is measured, so no alarm changes.",
        look=_alarms_are_quiet,
    ),
)
