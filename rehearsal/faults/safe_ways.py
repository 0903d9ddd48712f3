"""The safe ways in the guards' refusals: each change is refused, and then what the refusal says is typed."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rehearsal.account import LocalAccount
from rehearsal.faults.assemblies import Assemblies
from rehearsal.faults.cases import Case
from rehearsal.faults.typed import deploy, plan_steps, type_commands
from rehearsal.faults.verdict import Verdict, message
from training_cluster.flags.flag import facts_of
from training_cluster.flags.settings import Settings
from training_cluster.stack_names import CLUSTER_STACK, NETWORK_STACK, STORAGE_STACK

_NETWORK = {
    "vpc_id": "vpc-0123456789abcdef0",
    "public_subnet_id": "subnet-0123456789abcdef0",
    "private_subnet_id": "subnet-0123456789abcdef1",
}
_EFA = {"fsx_efa": "on", "fsx_gib": "38400"}
_GIVEN = {"bucket_name": "mine", "fsx_id": "fs-0123456789abcdef0"}
_OPEN = {"ssh_from": "203.0.113.0/24", "endpoints": "private", "fsx_mbps_per_tib": "500", "efs_mibps": "100"}
CHANGES: dict[str, tuple[dict[str, str], ...]] = {
    "the boundary changes": ({}, {"permissions_boundary": "arn:aws:iam::123456789012:policy/boundary"}),
    "Lustre changes": (_EFA, _EFA | {"fsx_mbps_per_tib": "1000"}, {"fsx_type": "scratch2"}),
    "the bucket changes": ({}, {"bucket_name": "mine"}),
    "given storage changes": (_GIVEN, {}, _GIVEN | {"fsx_id": "fs-0123456789abcdef1"}),
    "the network changes": ({}, _NETWORK),
    "flags of all clusters are left out": (_OPEN, {}, {"efs_mibps": _OPEN["efs_mibps"]}, {}),
}
"""Flags of a deploy, and those of the next ones, which are refused. Ids are replaced by those of resources
that exist. The way of the last refusal is followed to its end.
"""
ZONE = "the network's zone does not suit"
CASES = [Case(id=f"stacks: the safe way when {name}", question={"change": name}) for name in [*CHANGES, ZONE]]
_TYPED = re.compile(r"-c (\w+)=(\S*?)[.,;]?(?=\s|$)")
_STEP = re.compile(
    r"\(aws fsx (?P<make>[\w-]+)"
    r"|trainctl destroy --plan prints (?P<until>up to )?(?:for )?(?P<titles>\w[\w ]*?)"
    r"(?:, but not for (?P<without>[\w ]+?))?(?= \(|, then)"
    r"|then deploy(?P<deploy>[^.]*)"
)
_OUTPUTS = {"bucket_name": "BucketName", "fsx_id": "FileSystemId", "efs_id": "EfsId"}
"""Outputs of StorageStack, by flag."""


def steps(way: str) -> tuple[list[tuple[str, str]], list[re.Match[str]]]:
    """Return what a safe way says to type: flags that keep what is there, and the steps after "To ..."."""
    keep, _, move = way.partition(". To ")
    return _TYPED.findall(keep), list(_STEP.finditer(move))


@dataclass
class _Person:
    """One account, and the flags of its last deploy."""

    account: LocalAccount
    assemblies: Assemblies
    flags: dict[str, str] = field(default_factory=dict)
    made: dict[str, str] = field(default_factory=dict)
    """Ids of the resources that exist, by the sample or the word in a text that stands for them."""

    def deploy(self, stack: str = CLUSTER_STACK, **flags: str) -> None:
        """Deploy with these flags from now on. Raises AssertionError if that fails."""
        self.flags = flags
        assert deploy(self.account, self.app, stack), f"{flags}: {self._reasons()[-1:]}"

    @property
    def app(self) -> Path:
        return self.assemblies.of(self.flags, self.account.environment)

    def _reasons(self) -> list[str]:
        stacks = (NETWORK_STACK, STORAGE_STACK, CLUSTER_STACK)
        return [reason for name in stacks for reason in self.account.reasons(name)]

    def is_refused(self, change: Mapping[str, str]) -> list[str]:
        """Deploy with a change that has to be refused; return the ways that the refusal says."""
        before, app = Counter(self._reasons()), self.assemblies.of(change, self.account.environment)
        assert not deploy(self.account, app, CLUSTER_STACK), f"{change} was not refused"
        new = list((Counter(self._reasons()) - before).elements())
        said = [each.splitlines()[0] for each in new if "Nothing was changed. | " in each]
        assert said, f"{change} was not refused by a guard: {new}"
        return said[0].split(" | ")[1:]

    def is_refused_a_zone(self, **flags: str) -> str:
        """Deploy the network with flags that its zone's resource has to refuse; return what it says."""
        before, app = Counter(self._reasons()), self.assemblies.of(flags, self.account.environment)
        assert not deploy(self.account, app, "NetworkStack"), f"{flags} were not refused"
        return next(iter(Counter(self._reasons()) - before))

    def keep(self, ways: list[str]) -> None:
        """Type the flags that keep what is there, the second ones after the first ones."""
        typed = [[each for each in steps(way)[0] if each[1] != "(own)"] for way in ways]
        for turn in range(max(1, *map(len, typed))):
            self.deploy(**self.flags | dict(each[turn] for each in typed if turn < len(each)))

    def move(self, way: str, change: Mapping[str, str]) -> None:
        """Type the steps after "To ..."; the ids of what exists take the place of words."""
        outputs = self.account.outputs(STORAGE_STACK)
        storage = {flag: outputs[key] for flag, key in _OUTPUTS.items()}
        bucket = change.get("bucket_name", storage["bucket_name"])
        for step in steps(way)[1]:
            if step["make"]:
                storage["fsx_id"] = self._make_lustre(step["make"], storage["fsx_id"], bucket)
            elif step["titles"]:
                self._type_plan(step)
            else:
                typed, known = dict(_TYPED.findall(step["deploy"])), {**storage, **change}
                flags = {**self.flags, **(change if "new flags" in step["deploy"] or not typed else {})}
                for flag, value in typed.items():
                    flags[flag] = known[flag] if value.isupper() or value == "fs-NEW" else value
                kept = {
                    flag for flag in flags if facts_of(Settings.model_fields[flag]).refused_with not in flags
                }
                self.deploy(**{flag: flags[flag] for flag in kept})

    def _type_plan(self, step: re.Match[str]) -> None:
        titles = tuple(each.removeprefix("for ").lower() for each in step["titles"].split(" and "))
        for title, commands in list(plan_steps(self.account)):
            is_named = bool(step["until"]) or title.lower().startswith(titles)
            if is_named and not (step["without"] and title.lower().startswith(step["without"])):
                type_commands(commands, self.account, self.app)
            if step["until"] and title.lower().startswith(titles):
                return

    def _make_lustre(self, command: str, id_: str, bucket: str) -> str:
        fsx = self.account.client("fsx")
        if command == "create-file-system":
            network = self.account.outputs(NETWORK_STACK)
            made = fsx.create_file_system(
                FileSystemType="LUSTRE",
                StorageCapacity=1200,
                SubnetIds=[network["PrivateSubnetId"]],
                SecurityGroupIds=self._lustre_groups() or [network["NodeSecurityGroupId"]],
                LustreConfiguration={"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250},
            )
            return str(made["FileSystem"]["FileSystemId"])
        assert command == "create-data-repository-association", command
        for folder in ("datasets", "checkpoints"):
            path = f"s3://{bucket}/{folder}/"
            fsx.create_data_repository_association(
                FileSystemId=id_, FileSystemPath=f"/{folder}", DataRepositoryPath=path
            )
        return id_

    def _lustre_groups(self) -> list[str]:
        found = self.account.client("ec2").describe_security_groups()["SecurityGroups"]
        return [each["GroupId"] for each in found if each["Description"].startswith("FSx for Lustre")]

    def existing(self, flags: Mapping[str, str]) -> dict[str, str]:
        """Make what the samples among these flags stand for; return the flags with the ids."""
        for flag, value in flags.items():
            if value not in self.made and flag in {*_GIVEN, *_NETWORK, "permissions_boundary"}:
                self.made[value] = self._make(flag, value)
        return {flag: self.made.get(value, value) for flag, value in flags.items()}

    def _make(self, flag: str, sample: str) -> str:
        if flag == "bucket_name":
            self.account.client("s3").create_bucket(Bucket=sample)
            return sample
        if flag == "permissions_boundary":
            document = {"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}
            name, text = sample.rpartition("/")[2], json.dumps({"Version": "2012-10-17", **document})
            iam = self.account.client("iam")
            return str(iam.create_policy(PolicyName=name, PolicyDocument=text)["Policy"]["Arn"])
        if flag == "fsx_id":
            if not self.account.stack(NETWORK_STACK):
                self.deploy("NetworkStack")
            return self._make_lustre("create-file-system", "", "")
        ec2, zone = self.account.client("ec2"), self.account.outputs(NETWORK_STACK)["ZoneName"]
        vpc = ec2.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"][0]["VpcId"]
        if flag == "vpc_id":
            return str(vpc)
        cidr = f"172.31.{200 if flag == 'public_subnet_id' else 201}.0/24"
        made = ec2.create_subnet(VpcId=vpc, CidrBlock=cidr, AvailabilityZone=zone)
        return str(made["Subnet"]["SubnetId"])


def try_safe_way(case: Case, account: LocalAccount, assemblies: Assemblies) -> Verdict:
    """Deploy, make the changes, and type what their refusals say; the bucket's objects must remain."""
    person, change = _Person(account, assemblies), str(case.question["change"])
    if change == ZONE:
        return _try_zone(case, person)
    (start, *changes), stuck, lost = CHANGES[change], list[str](), list[str]()
    ways: list[str] = []
    try:
        person.deploy(**person.existing(start))
        s3, bucket = account.client("s3"), account.outputs(STORAGE_STACK)["BucketName"]
        s3.put_object(Bucket=bucket, Key="datasets/1", Body=b"data")
        for each in changes:
            wanted = person.existing(each)
            ways = person.is_refused(wanted)
            person.keep(ways)
        person.move(ways[0], wanted)
        if not s3.list_objects_v2(Bucket=bucket, Prefix="datasets/").get("Contents"):
            lost.append(f"s3://{bucket}/datasets/1")
    except Exception as error:  # the verdict reports it
        stuck.append(message(error))
    return Verdict(
        id=case.id, fired=bool(ways), ended="refused", next="typed", stuck=stuck, lost=lost, reasons=ways
    )


def _try_zone(case: Case, person: _Person) -> Verdict:
    """Type what the network's zone says of a flag, of a resource group and of an instance type."""
    types, stuck, said = {"family": "trn1"}, list[str](), list[str]()
    queues = person.account.address.tmp / "block.yaml"

    def queue(number: int, **keys: object) -> dict[str, str]:
        file = queues.with_name(f"{number}.yaml")
        file.write_text(json.dumps({"block": {"nodes": 1, **keys}}))
        return types | {"queues": str(file)}

    try:
        said.append(person.is_refused_a_zone(**types, zone="use1-az1"))
        types |= dict(_TYPED.findall(said[-1]))
        person.deploy("NetworkStack", **types)
        zone = person.account.outputs(NETWORK_STACK)["ZoneName"]
        ec2, groups = person.account.client("ec2"), person.account.client("resource-groups")
        query = {"Type": "TAG_FILTERS_1_0", "Query": "{}"}
        by_query = groups.create_group(Name="by-query", ResourceQuery=query)["Group"]["GroupArn"]
        reserved = {"InstanceType": "c5.4xlarge", "InstanceCount": 1, "AvailabilityZone": zone}
        made = ec2.create_capacity_reservation(**reserved, InstancePlatform="Linux/UNIX")
        members = [made["CapacityReservation"]["CapacityReservationArn"]]
        groups.group_resources(Group=by_query, ResourceArns=members)
        of = {"instance_types": ["c5.4xlarge"]}
        said.append(person.is_refused_a_zone(**queue(1, **of, capacity=f"reservation:{by_query}")))
        type_commands(
            re.findall("aws resource-groups create-group .*'", said[-1]), person.account, person.app
        )
        pool = groups.get_group(GroupName="NAME")["Group"]["GroupArn"]
        groups.group_resources(Group=pool, ResourceArns=members)
        person.deploy("NetworkStack", **queue(2, **of, capacity=f"reservation:{pool}"))
        elsewhere = {"family": "p6-b200", "capacity": "spot"}
        said.append(person.is_refused_a_zone(**queue(3, **elsewhere)))
        assert '"Queues in other zones"' in said[-1], said[-1]
        person.deploy("NetworkStack", **types)  # "Use instance types ... of" the zone
        vpc = person.account.outputs(NETWORK_STACK)["VpcId"]
        there = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.64.0/24", AvailabilityZone="us-east-1a")
        person.deploy("NetworkStack", **queue(4, **elsewhere, subnet_ids=[there["Subnet"]["SubnetId"]]))
    except Exception as error:  # the verdict reports it
        stuck.append(message(error))
    return Verdict(id=case.id, fired=bool(said), ended="refused", next="typed", stuck=stuck, reasons=said)
