"""Keys of a cluster config that have a flag."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from ops.importing.translation import Config, Translation, nodes_of
from training_cluster.catalog.families import load_base
from training_cluster.cluster.bundle import bootstrap_budget_s
from training_cluster.flags.settings import Settings

_OPEN_ROLE = "arn:aws:iam::000000000000:role/to-complete"
_UNSET_VPC = "vpc-00000000"


def take_flags(config: Config, to: Translation) -> None:
    """Take all keys that flags outside the queues carry."""
    head = config["HeadNode"]
    take(to, "os", config.get("Image", {}).get("Os"), "Image.Os")
    take(to, "head_node_type", head.get("InstanceType"), "HeadNode.InstanceType")
    size = head.get("LocalStorage", {}).get("RootVolume", {}).get("Size")
    take(to, "head_root_gib", size, "HeadNode.LocalStorage.RootVolume.Size")
    take(to, "key_name", head.get("Ssh", {}).get("KeyName"), "HeadNode.Ssh.KeyName")
    boundary = config.get("Iam", {}).get("PermissionsBoundary")
    take(to, "permissions_boundary", boundary, "Iam.PermissionsBoundary")
    to.carry("Region")
    _network(config, to)
    _login(config, to)
    _accounting(config, to)
    _tags(config, to)
    _rights(config, to)
    _image(config, to)
    _timeouts(config, to)


def take(to: Translation, flag: str, value: Any, path: str) -> bool:
    """Take a value as a flag if the flag allows it; else it is lost, with the reason."""
    if value is None:
        return False
    to.carry(path)
    try:
        Settings.model_validate({flag: value if isinstance(value, int) else str(value)})
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        to.lose(path, value, f"-c {flag} does not take it: {reason}")
        return False
    to.flags[flag] = str(value)
    return True


def _network(config: Config, to: Translation) -> None:
    head = config["HeadNode"].get("Networking", {})
    queues = config["Scheduling"].get("SlurmQueues", [])
    subnets = [each for queue in queues for each in queue.get("Networking", {}).get("SubnetIds", [])]
    path = "HeadNode.Networking.SubnetId"
    if head.get("SubnetId") in subnets:
        to.carry(path)
        to.flags["public_access"], public = "off", True
    else:
        public = take(to, "public_subnet_id", head.get("SubnetId"), path)
    private = bool(subnets) and take(
        to, "private_subnet_id", subnets[0], "Scheduling.SlurmQueues[].Networking.SubnetIds"
    )
    if public and private:
        to.flags["vpc_id"] = _UNSET_VPC
        to.fill.append(
            f"vpc_id: no cluster config has it: aws ec2 describe-subnets --subnet-ids {subnets[0]} "
            "--query Subnets[0].VpcId"
        )
    else:
        for flag in ("public_subnet_id", "private_subnet_id", "public_access"):
            to.flags.pop(flag, None)
    _groups(config, to)
    allowed = config["HeadNode"].get("Ssh", {}).get("AllowedIps")
    if allowed and take(to, "ssh_from", allowed, "HeadNode.Ssh.AllowedIps") and str(allowed).endswith("/0"):
        to.flags["ssh_from_anywhere"] = "yes"


def _groups(config: Config, to: Translation) -> None:
    """Take one group of all nodes as a flag; other groups become additional ones beside ours."""
    to.carry(*(f"{path}.Networking.SecurityGroups" for path, _ in nodes_of(config)))
    groups = {tuple(node.get("Networking", {}).get("SecurityGroups", ())) for _, node in nodes_of(config)}
    (named, *others) = groups
    if not others and len(named) == 1:
        take(to, "security_group_id", named[0], "")
        return
    for path, node in nodes_of(config):
        networking = node.get("Networking", {})
        if given := networking.get("SecurityGroups"):
            more = [*given, *networking.get("AdditionalSecurityGroups", [])]
            networking["AdditionalSecurityGroups"] = list(dict.fromkeys(more))
            to.replaced.append(
                f"{path}.Networking.SecurityGroups: {', '.join(given)} beside our group, in which "
                "the nodes reach each other"
            )


def _image(config: Config, to: Translation) -> None:
    """Take the image of all nodes for queues, head node and login nodes, each of which has its own."""
    to.carry("Image.CustomAmi")
    if ami := config.get("Image", {}).get("CustomAmi"):
        to.image = str(ami)
        for path, node in nodes_of(config):
            if not path.startswith("Scheduling"):
                assert isinstance(node, dict)
                node.setdefault("Image", {}).setdefault("CustomAmi", ami)


def _timeouts(config: Config, to: Translation) -> None:
    """Leave shorter time limits of the bootstrap out: our own steps may take longer."""
    base, limits = load_base(), config.get("DevSettings", {}).get("Timeouts", {})
    least = {
        "HeadNodeBootstrapTimeout": base.head_node.bootstrap_timeout_s,
        "ComputeNodeBootstrapTimeout": base.compute_node.boot_s + bootstrap_budget_s(Settings()),
    }
    for key, seconds in least.items():
        if limits.get(key, seconds) <= seconds:
            to.carry(f"DevSettings.Timeouts.{key}")
            if key in limits:
                to.replaced.append(
                    f"DevSettings.Timeouts.{key}: {limits[key]} s: ours is {seconds} s or more"
                )


def _login(config: Config, to: Translation) -> None:
    pools = config.get("LoginNodes", {}).get("Pools", [])
    head = config["HeadNode"]
    ssh = head.get("Ssh", {}).get("AllowedIps")
    for index, pool in enumerate(pools):
        path = f"LoginNodes.Pools[{pool.get('Name')}]"
        if not index:
            take(to, "login_nodes", pool.get("Count", 1), f"{path}.Count")
        to.carry(f"{path}.Name")
        if pool.get("Networking", {}).get("SubnetIds") == [head.get("Networking", {}).get("SubnetId")]:
            to.carry(f"{path}.Networking.SubnetIds")
        if pool.get("Ssh", {}).get("AllowedIps") == ssh:
            to.carry(f"{path}.Ssh")


def _accounting(config: Config, to: Translation) -> None:
    path = "Scheduling.SlurmSettings.Database"
    database = config["Scheduling"].get("SlurmSettings", {}).get("Database", {})
    for key, flag in {
        "Uri": "accounting",
        "UserName": "accounting_user",
        "PasswordSecretArn": "accounting_secret",
    }.items():
        value = database.get(key)
        text = (
            str(value).removeprefix("mysql://").rstrip("/") if value is not None and key == "Uri" else value
        )
        take(to, flag, text, f"{path}.{key}")


def _tags(config: Config, to: Translation) -> None:
    to.carry("Tags")
    if tags := config.get("Tags"):
        take(to, "tags", ",".join(f"{each['Key']}={each['Value']}" for each in tags), "Tags")


def _rights(config: Config, to: Translation) -> None:
    """Take policies and buckets of any node for all nodes: the flags know no difference."""
    policies, read, write = dict[str, None](), dict[str, None](), dict[str, None]()
    for path, node in nodes_of(config):
        iam = node.get("Iam", {})
        to.carry(f"{path}.Iam.AdditionalIamPolicies", f"{path}.Iam.S3Access")
        policies |= dict.fromkeys(str(each.get("Policy")) for each in iam.get("AdditionalIamPolicies", []))
        for each in iam.get("S3Access", []):
            folder = str(each.get("KeyName", "")).rstrip("*").strip("/")
            place = f"{each.get('BucketName')}/{folder}".rstrip("/")
            (write if each.get("EnableWriteAccess") else read)[place] = None
        if profile := iam.pop("InstanceProfile", None):
            iam["InstanceRole"] = _OPEN_ROLE
            name = str(profile).rpartition("/")[2]
            ask = f"aws iam get-instance-profile --instance-profile-name {name}"
            words = f"put its role in place of {_OPEN_ROLE}: {ask} --query InstanceProfile.Roles[0].Arn"
            to.fill.append(f"{path}.Iam.InstanceProfile: {words}")
    for flag, found, words in (
        ("node_policies", policies, "AdditionalIamPolicies"),
        ("read_buckets", read, "S3Access"),
        ("write_buckets", write, "S3Access"),
    ):
        for each in found:
            take(to, flag, each, words)
        if allowed := [each for each in found if not any(lost.value == each for lost in to.lost)]:
            to.flags[flag] = ",".join(allowed)
