"""Keys of a cluster config that have a flag, without keys of network, storage and queues."""

from typing import Any

from pydantic import ValidationError

from ops.importing.translation import Config, Translation, nodes_of
from training_cluster.catalog.families import load_base
from training_cluster.cluster.bundle import bootstrap_budget_s
from training_cluster.directory.file import directory_problems
from training_cluster.flags.account import parse_tags
from training_cluster.flags.settings import Settings

_OPEN_ROLE = "arn:aws:iam::000000000000:role/to-complete"
_ON_BUSY = {"DRAIN": "drain", "TERMINATE": "stop"}
"""Strategies of ParallelCluster, and on_busy of the same effect; the third one, to fail, is both defaults."""


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
    _directory(config, to)
    _on_busy(config, to)
    _accounting(config, to)
    _tags(config, to)
    _profiles(config, to)
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


def _directory(config: Config, to: Translation) -> None:
    """Take the directory of users if -c directory takes all of its keys."""
    path, given = "DirectoryService", config.get("DirectoryService")
    to.carry(path)
    if given is None:
        return
    if problems := directory_problems(given):
        for key, words in problems:
            to.lose(f"{path}.{key}", given.get(key), f"-c directory does not take it: {words}")
        to.lose(
            path,
            given,
            "users of the directory: write its keys to a file, with the keys above corrected, and give it: "
            "-c directory=FILE (docs/how-to/users.md)",
        )
        return
    to.directory = dict(given)
    if "filter_groups" not in given.get("AdditionalSssdConfigs", {}):
        to.replaced.append(
            f"{path}.AdditionalSssdConfigs: filter_groups hides groups of the directory such as sudo and "
            "wheel, whose members would be root on the nodes"
        )


def _on_busy(config: Config, to: Translation) -> None:
    path = "Scheduling.SlurmSettings.QueueUpdateStrategy"
    strategy = config["Scheduling"].get("SlurmSettings", {}).get("QueueUpdateStrategy")
    to.carry(path)
    if value := _ON_BUSY.get(str(strategy)):
        to.flags["on_busy"] = value
        to.replaced.append(f"{path}: {strategy} -> on_busy={value}")


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
        given = limits.get(key, seconds)
        if isinstance(given, int) and given <= seconds:
            to.carry(f"DevSettings.Timeouts.{key}")
            if key in limits:
                to.replaced.append(f"DevSettings.Timeouts.{key}: {given} s: ours is {seconds} s or more")


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
    kept = []
    to.carry("Tags")
    for each in config.get("Tags", []):
        key, value = str(each.get("Key")), str(each.get("Value"))
        if problem := _tag_problem(key, value):
            to.lose(f"Tags[{key}]", value, f"-c tags does not take it: {problem}")
        else:
            kept.append(f"{key}={value}")
    take(to, "tags", ",".join(kept) or None, "Tags")


def _tag_problem(key: str, value: str) -> str:
    """Return why -c tags cannot hold a tag; "" if it reads the same tag."""
    try:
        found = parse_tags(f"{key}={value}")
    except ValueError as error:
        return str(error)
    return (
        ""
        if found == {key: value}
        else "commas separate tags, the first = ends a key, blanks at an end are dropped"
    )


def _profiles(config: Config, to: Translation) -> None:
    """Take roles in place of instance profiles. Policies and buckets stay at their nodes, as overrides."""
    for path, node in nodes_of(config):
        iam = node.get("Iam", {})
        if profile := iam.pop("InstanceProfile", None):
            iam["InstanceRole"] = _OPEN_ROLE
            name = str(profile).rpartition("/")[2]
            ask = f"aws iam get-instance-profile --instance-profile-name {name}"
            words = f"put its role in place of {_OPEN_ROLE}: {ask} --query InstanceProfile.Roles[0].Arn"
            to.fill.append(f"{path}.Iam.InstanceProfile: {words}")
