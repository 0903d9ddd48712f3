"""Proofs about an app's templates: each says what breaks it, and nothing when it holds.

None knows what the app is meant to be: they read resources and rules wherever these stand.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

from training_cluster.acknowledgements import flat

Json = Any
Proof = Callable[["App"], list[str]]


@dataclass(frozen=True, kw_only=True)
class App:
    """Templates by stack, and the cluster config in them, every reference in it written as a name."""

    templates: dict[str, Json]
    config: Json

    @classmethod
    def of(cls, templates: dict[str, Json]) -> "App":
        (cluster,) = [
            resource
            for template in templates.values()
            for resource in template["Resources"].values()
            if resource["Type"] == "Custom::TrainingCluster"
        ]
        return cls(
            templates=templates, config=json.loads(flat(cluster["Properties"]["ClusterConfiguration"]))
        )

    def resources(self, kind: str) -> Iterator[tuple[str, Json]]:
        """Yield stack and logical id, with the properties."""
        for stack, template in self.templates.items():
            for id_, resource in template["Resources"].items():
                if resource["Type"] == kind:
                    yield f"{stack}/{id_}", resource.get("Properties", {})

    def exported(self, name: str) -> str:
        """Return the value of an export: a resource, as `<Id>` or `<Id.GroupId>`, or a plain id."""
        (value,) = [
            flat(output["Value"])
            for template in self.templates.values()
            for output in template.get("Outputs", {}).values()
            if flat(output.get("Export", {}).get("Name", "")) == name
        ]
        return value

    @property
    def queues(self) -> list[Json]:
        queues: list[Json] = self.config["Scheduling"]["SlurmQueues"]
        return queues

    @property
    def people_reach(self) -> list[Json]:
        """Return the head node and the pools of login nodes."""
        return [self.config["HeadNode"], *self.config.get("LoginNodes", {}).get("Pools", [])]


def ingress_rules(app: App) -> Iterator[tuple[str, Json]]:
    """Yield each rule with its group."""
    for name, properties in app.resources("AWS::EC2::SecurityGroup"):
        for rule in properties.get("SecurityGroupIngress", []):
            yield f"<{name.partition('/')[2]}.GroupId>", rule
    for _, rule in app.resources("AWS::EC2::SecurityGroupIngress"):
        yield flat(rule["GroupId"]), rule


def open_to_the_world(app: App) -> list[str]:
    """List rules that allow more than a /8, or an unknown source."""
    return [f"{group}: {flat(rule)}" for group, rule in ingress_rules(app) if not _is_narrow(rule)]


def _is_narrow(rule: Json) -> bool:
    if "SourceSecurityGroupId" in rule:
        return True
    cidr = rule.get("CidrIp", rule.get("CidrIpv6"))
    # A reference could be anything.
    return isinstance(cidr, str) and ip_network(cidr).prefixlen >= 8


def public_data(app: App) -> list[str]:
    """List buckets without all four locks or without TLS, and databases with a public address."""
    locks = {"BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"}
    found = []
    for name, bucket in app.resources("AWS::S3::Bucket"):
        locked = bucket.get("PublicAccessBlockConfiguration", {})
        if {each for each in locked if locked[each] is True} != locks or "AccessControl" in bucket:
            found.append(f"{name} is public")
        if not _answers_over_tls_only(app, name.partition("/")[2]):
            found.append(f"{name} answers without TLS")
    for name, database in app.resources("AWS::RDS::DBInstance"):
        if database.get("PubliclyAccessible") is not False:
            found.append(f"{name} is public")
    return found


def _answers_over_tls_only(app: App, bucket: str) -> bool:
    return any(
        flat(policy["Bucket"]) == f"<{bucket}>"
        and statement["Action"] == "s3:*"
        and denies_without_tls(statement)
        for _, policy in app.resources("AWS::S3::BucketPolicy")
        for statement in policy["PolicyDocument"]["Statement"]
    )


def denies_without_tls(statement: Json) -> bool:
    """Return True if a statement of a resource's policy denies requests without TLS."""
    return (
        statement["Effect"] == "Deny"
        and statement["Principal"] in ("*", {"AWS": "*"})
        and statement.get("Condition") == {"Bool": {"aws:SecureTransport": "false"}}
    )


def statements(part: Json) -> Iterator[Json]:
    """Yield every statement of every policy document in a template."""
    if isinstance(part, list):
        for each in part:
            yield from statements(each)
    elif isinstance(part, dict):
        if "Effect" in part:
            yield part
        for each in part.values():
            yield from statements(each)


def wide_rights(app: App) -> list[str]:
    """List statements that allow all actions, all of a service, all but some, or everybody."""
    return [
        f"{stack}: {json.dumps(each)}"
        for stack, template in app.templates.items()
        for each in statements(template["Resources"])
        if each["Effect"] == "Allow" and (_allows_any_action(each) or _allows_anybody(each))
    ]


def _allows_any_action(statement: Json) -> bool:
    actions = statement.get("Action", "*")  # NotAction
    actions = [actions] if isinstance(actions, str) else actions
    return any(action == "*" or action.partition(":")[2] == "*" for action in actions)


def _allows_anybody(statement: Json) -> bool:
    everybody = statement.get("Principal") in ("*", {"AWS": "*"}) or "NotPrincipal" in statement
    return everybody and not statement.get("Condition")


def attached_aws_policies(app: App) -> set[str]:
    """List AWS's managed policies of all roles in the templates, without `arn:<AWS::Partition>:iam::aws:`."""
    return {
        flat(arn).partition(":iam::aws:")[2]
        for _, role in app.resources("AWS::IAM::Role")
        for arn in role.get("ManagedPolicyArns", [])
        if ":iam::aws:" in flat(arn)
    }


def open_to_ssh(app: App, ssh_from: str | None = None) -> list[str]:
    """List rules that let others than nodes reach head and login nodes; ssh_from may reach port 22."""
    found = []
    for node in app.people_reach:
        networking = node["Networking"]
        # Without groups of ours ParallelCluster makes one, and opens 22 in it to Ssh.AllowedIps: the world.
        if not networking.get("SecurityGroups") or "AdditionalSecurityGroups" in networking:
            found.append(f"a group of ParallelCluster's: {json.dumps(networking)}")
        if "AllowedIps" in node.get("Ssh", {}):
            found.append(f"AllowedIps: {json.dumps(node['Ssh'])}")
        for group in networking.get("SecurityGroups", []):
            found += _rules_for_others(app, group, ssh_from)
    return found


def _rules_for_others(app: App, export: str, ssh_from: str | None) -> list[str]:
    group = app.exported(export)
    ssh = ["tcp", 22, 22, ssh_from]
    return [
        f"{group}: {flat(rule)}"
        for of, rule in ingress_rules(app)
        if of in (group, export)
        and flat(rule.get("SourceSecurityGroupId", "")) not in (group, export)
        and not (
            ssh_from and [rule.get(each) for each in ("IpProtocol", "FromPort", "ToPort", "CidrIp")] == ssh
        )
    ]


def efa_in_public(app: App) -> list[str]:
    """List queues with EFA in a reachable subnet, or with a public address; other subnets by their id."""
    found = []
    for queue in app.queues:
        if any(each["Efa"]["Enabled"] for each in queue["ComputeResources"]):
            networking = queue["Networking"]
            public = [each for each in networking["SubnetIds"] if _is_public(app, app.exported(each))]
            if public or networking.get("AssignPublicIp") or not networking["SubnetIds"]:
                found.append(f"{queue['Name']}: {json.dumps(networking)}")
    return found


def _is_public(app: App, subnet: str) -> bool:
    if subnet.startswith("subnet-"):
        # Somebody's own: preflight looks at its routes.
        public = app.exported(app.config["HeadNode"]["Networking"]["SubnetId"])
        return subnet == public
    (properties,) = [
        each for name, each in app.resources("AWS::EC2::Subnet") if f"<{name.partition('/')[2]}>" == subnet
    ]
    tables = [
        flat(each["RouteTableId"])
        for _, each in app.resources("AWS::EC2::SubnetRouteTableAssociation")
        if flat(each["SubnetId"]) == subnet
    ]
    to_the_internet = [
        route
        for _, route in app.resources("AWS::EC2::Route")
        if flat(route["RouteTableId"]) in tables and "GatewayId" in route
    ]
    return properties.get("MapPublicIpOnLaunch") is not False or not tables or bool(to_the_internet)


def imds_v1(app: App) -> list[str]:
    """List settings that allow version 1 of the metadata service, or give users the head node's."""
    found = []
    if app.config.get("Imds") != {"ImdsSupport": "v2.0"}:
        found.append(f"Imds: {app.config.get('Imds')}")
    if app.config["HeadNode"].get("Imds") != {"Secured": True}:
        found.append(f"HeadNode.Imds: {app.config['HeadNode'].get('Imds')}")
    for name, properties in app.resources("AWS::ImageBuilder::InfrastructureConfiguration"):
        if properties.get("InstanceMetadataOptions", {}).get("HttpTokens") != "required":
            found.append(f"{name}: {properties.get('InstanceMetadataOptions')}")
    return found
