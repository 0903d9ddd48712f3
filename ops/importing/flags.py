"""Keys of a cluster config that have a flag."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from ops.importing.translation import Config, Translation, nodes_of
from training_cluster.catalog.families import load_base
from training_cluster.flags.settings import Settings

_LUSTRE_TYPES = {"SCRATCH_2": "scratch2", "PERSISTENT_2": "persistent2"}
_LUSTRE_KEPT = (
    *("DeploymentType", "StorageCapacity", "PerUnitStorageThroughput"),
    *("DataCompressionType", "DeletionPolicy", "FileSystemTypeVersion"),
)
_EFS_KEPT = (
    *("FileSystemId", "Encrypted", "EncryptionInTransit", "DeletionPolicy"),
    *("ThroughputMode", "PerformanceMode"),
)
_UNSET_VPC = "vpc-00000000"


def take_flags(config: Config, to: Translation) -> None:
    """Take all keys that flags outside the queues carry."""
    head = config["HeadNode"]
    _take(to, "os", config.get("Image", {}).get("Os"), "Image.Os")
    _take(to, "head_node_type", head.get("InstanceType"), "HeadNode.InstanceType")
    size = head.get("LocalStorage", {}).get("RootVolume", {}).get("Size")
    _take(to, "head_root_gib", size, "HeadNode.LocalStorage.RootVolume.Size")
    _take(to, "key_name", head.get("Ssh", {}).get("KeyName"), "HeadNode.Ssh.KeyName")
    boundary = config.get("Iam", {}).get("PermissionsBoundary")
    _take(to, "permissions_boundary", boundary, "Iam.PermissionsBoundary")
    to.carry("Region")
    _network(config, to)
    _login(config, to)
    _accounting(config, to)
    _tags(config, to)
    _rights(config, to)
    _storage(config, to)


def _take(to: Translation, flag: str, value: Any, path: str) -> bool:
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
        public = _take(to, "public_subnet_id", head.get("SubnetId"), path)
    private = bool(subnets) and _take(
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
    groups = {tuple(node.get("Networking", {}).get("SecurityGroups", ())) for _, node in nodes_of(config)}
    to.carry(*(f"{path}.Networking.SecurityGroups" for path, _ in nodes_of(config)))
    if groups != {()}:
        named = groups.pop()
        if groups or len(named) != 1 or not _take(to, "security_group_id", named[0], ""):
            to.lose(
                "Networking.SecurityGroups",
                named,
                "all nodes have one group: -c security_group_id, and others as AdditionalSecurityGroups",
            )
    allowed = config["HeadNode"].get("Ssh", {}).get("AllowedIps")
    if allowed and _take(to, "ssh_from", allowed, "HeadNode.Ssh.AllowedIps") and str(allowed).endswith("/0"):
        to.flags["ssh_from_anywhere"] = "yes"


def _login(config: Config, to: Translation) -> None:
    pools = config.get("LoginNodes", {}).get("Pools", [])
    for index, pool in enumerate(pools):
        path = f"LoginNodes.Pools[{pool.get('Name')}]"
        if index:
            to.carry(path)
            to.lose(path, pool, "one pool of login nodes: -c login_nodes")
            continue
        _take(to, "login_nodes", pool.get("Count", 1), f"{path}.Count")
        to.carry(f"{path}.Name", f"{path}.Networking.SubnetIds", f"{path}.Networking.SubnetId", f"{path}.Ssh")


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
        _take(to, flag, text, f"{path}.{key}")


def _tags(config: Config, to: Translation) -> None:
    to.carry("Tags")
    if tags := config.get("Tags"):
        _take(to, "tags", ",".join(f"{each['Key']}={each['Value']}" for each in tags), "Tags")


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
        for key in ("InstanceRole", "InstanceProfile"):
            if key in iam:
                to.carry(f"{path}.Iam.{key}")
                to.lose(
                    f"{path}.Iam.{key}",
                    iam[key],
                    "roles are made here: -c node_policies, permissions_boundary",
                )
    for flag, found, words in (
        ("node_policies", policies, "AdditionalIamPolicies"),
        ("read_buckets", read, "S3Access"),
        ("write_buckets", write, "S3Access"),
    ):
        for each in found:
            _take(to, flag, each, words)
        if allowed := [each for each in found if not any(lost.value == each for lost in to.lost)]:
            to.flags[flag] = ",".join(allowed)


def _storage(config: Config, to: Translation) -> None:
    base = load_base()
    for item in config.get("SharedStorage", []):
        path = f"SharedStorage[{item.get('Name')}]"
        kind, folder = item.get("StorageType"), str(item.get("MountDir", "")).rstrip("/")
        settings = item.get(f"{kind}Settings", {})
        id_ = settings.get("FileSystemId") or settings.get("VolumeId")
        if kind == "FsxLustre" and folder == base.shared_dir and "fsx_id" not in to.flags:
            to.carry(path)
            _lustre(settings, path, to)
        elif kind == "Efs" and folder in {base.efs_dir, "/home"} and "efs_id" not in to.flags:
            to.carry(path)
            _take(to, "efs_id", id_, f"{path}.EfsSettings.FileSystemId")
            if folder == "/home":
                to.flags["home"] = "efs"
            to.lose_others(
                settings,
                f"{path}.EfsSettings",
                (
                    "FileSystemId",
                    "Encrypted",
                    "EncryptionInTransit",
                    "DeletionPolicy",
                    "ThroughputMode",
                    "PerformanceMode",
                ),
                "EFS of ours is made otherwise",
            )
        elif not id_:
            to.carry(path)
            to.lose(
                path,
                item,
                f"ParallelCluster would make it and delete it: make it, and mount it by its id "
                f"(docs/overrides.md), or use {base.shared_dir} and {base.efs_dir}",
            )


def _lustre(settings: Mapping[str, Any], path: str, to: Translation) -> None:
    inner = f"{path}.FsxLustreSettings"
    if settings.get("FileSystemId"):
        _take(to, "fsx_id", settings["FileSystemId"], f"{inner}.FileSystemId")
        return
    kind = settings.get("DeploymentType", "SCRATCH_2")
    if kind in _LUSTRE_TYPES:
        _take(to, "fsx_type", _LUSTRE_TYPES[kind], f"{inner}.DeploymentType")
    else:
        to.lose(f"{inner}.DeploymentType", kind, "-c fsx_type takes persistent2, scratch2")
    _take(to, "fsx_gib", settings.get("StorageCapacity"), f"{inner}.StorageCapacity")
    _take(
        to, "fsx_mbps_per_tib", settings.get("PerUnitStorageThroughput"), f"{inner}.PerUnitStorageThroughput"
    )
    kept = (
        "DeploymentType",
        "StorageCapacity",
        "PerUnitStorageThroughput",
        "DataCompressionType",
        "DeletionPolicy",
    )
    to.lose_others(settings, inner, kept, "Lustre of ours is linked to the bucket and retained")
