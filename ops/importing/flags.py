"""Keys of a cluster config that a flag carries in another form: directory, tags, roles; time limits."""

from typing import Any

from ops.importing.translation import Config, Translation
from training_cluster.directory.file import directory_problems
from training_cluster.flags.account import parse_tags, tag_problem
from training_cluster.overrides.nodes import placed_nodes
from training_cluster.overrides.reserved import flag_for

OPEN_ROLE = "arn:aws:iam::000000000000:role/to-complete"


def take_flags(config: dict[str, Any], to: Translation) -> None:
    """Take what a flag carries in another form than the key."""
    _on_busy(config["Scheduling"].get("SlurmSettings", {}), to)
    _directory(config, to)
    _tags(config, to)
    _roles(config, to)


def _on_busy(slurm: dict[str, Any], to: Translation) -> None:
    path = "Scheduling.SlurmSettings.QueueUpdateStrategy"
    strategy = slurm.get("QueueUpdateStrategy")
    if strategy and (typed := flag_for(path, strategy)):
        del slurm["QueueUpdateStrategy"]  # the provider writes it when it updates
        words = f"{strategy}: type -c on_busy={typed[1]} with a deploy that has to stop busy nodes"
        to.note("moved", path, words)


def _directory(config: Config, to: Translation) -> None:
    """Take the directory of users if -c directory takes all of its keys."""
    path, given = "DirectoryService", config.get("DirectoryService")
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
        words = (
            "hides groups of the directory such as sudo and wheel, whose members would be root on the nodes"
        )
        to.note("narrower", f"{path}.AdditionalSssdConfigs.filter_groups", words)


def _tags(config: dict[str, Any], to: Translation) -> None:
    """Take the tags that -c tags can hold; others stay for the overrides, without those that AWS refuses."""
    kept = []
    for each in list(config.get("Tags", [])):
        key, value = str(each.get("Key")), str(each.get("Value"))
        if problem := tag_problem(key, value):
            to.lose(f"Tags[{key}]", value, problem)
            config["Tags"].remove(each)
        elif _is_kept(key, value):
            kept.append(f"{key}={value}")
    if kept:
        to.flags["tags"] = ",".join(kept)


def _is_kept(key: str, value: str) -> bool:
    """Return True if -c tags reads the same tag: the first = ends a key, and spaces at its ends go."""
    try:
        return parse_tags(f"{key}={value}") == {key: value}
    except ValueError:
        return False


def _roles(config: Config, to: Translation) -> None:
    """Take roles in place of instance profiles. Policies and buckets stay at their nodes, as overrides."""
    for path, node in placed_nodes(config):
        iam = node.get("Iam", {})
        if profile := iam.pop("InstanceProfile", None):
            iam["InstanceRole"] = OPEN_ROLE
            name = str(profile).rpartition("/")[2]
            ask = f"aws iam get-instance-profile --instance-profile-name {name}"
            words = f"put its role in place of {OPEN_ROLE}: {ask} --query InstanceProfile.Roles[0].Arn"
            to.fill.append(f"{path}.Iam.InstanceProfile: {words}")
        if "InstanceRole" in iam:
            words = "the deploy attaches to your role what this app's scripts need: sessions, data, images"
            to.note("wider", f"{path}.Iam", words)


def take_timeouts(config: Config, ours: Config, to: Translation) -> None:
    """Leave time limits of the bootstrap out that are shorter than those of `ours`, as rendered."""
    limits = config.get("DevSettings", {}).get("Timeouts", {})
    for key, seconds in ours["DevSettings"]["Timeouts"].items():
        given = limits.get(key)
        if isinstance(given, int) and given <= seconds:
            del limits[key]
            to.note("replaced", f"DevSettings.Timeouts.{key}", f"{given} s: ours is {seconds} s or more")
