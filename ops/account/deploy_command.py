"""The `cdk deploy` of a cluster with the flags of its last deploy, since a flag left out gets its default."""

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from training_cluster.flags.flag import is_remembered
from training_cluster.flags.given import given_flags
from training_cluster.flags.settings import Settings
from training_cluster.problems import ConfigurationError
from training_cluster.queues.file import flags_of, read_queues
from training_cluster.stack_names import CLUSTER_STACK, DEFAULT_CLUSTER

_DEPLOY = ("npx", "cdk", "deploy")
_OF_ONE_DEPLOY = {flag for flag, info in Settings.model_fields.items() if not is_remembered(info)}
_UNKNOWN = ", with its flags"


def deploy_command(cluster: str, flags: Mapping[str, Any] | None, /, **changed: object) -> str:
    """Return the command for people: where the flags are unknown, it says that they are missing.

    Args:
        flags: flags of the last deploy; empty without one, None if they are unknown.
        changed: flags to deploy with, in place of the same flags of the last deploy.
    """
    command = shlex.join(deploy_words(cluster, flags or {}, **changed))
    return command if flags is not None else command + _UNKNOWN


def deploy_words(cluster: str, flags: Mapping[str, Any], /, **changed: object) -> list[str]:
    """Return the words of the command. `deploy_command` describes the arguments."""
    named = {"cluster_name": cluster} | changed
    kept = {flag: value for flag, value in repeated_flags(flags).items() if flag not in named}
    if named["cluster_name"] == DEFAULT_CLUSTER and "cluster_name" not in changed:
        del named["cluster_name"]
    return [*_DEPLOY, CLUSTER_STACK, *_options(kept | named)]


def stacks_command(stack_ids: Iterable[str], settings: Settings) -> str:
    """Return the command that deploys shared stacks with the flags that a user typed."""
    return shlex.join([*_DEPLOY, *stack_ids, *_options(given_flags(settings))])


def _options(flags: Mapping[str, object]) -> list[str]:
    return [word for flag, value in flags.items() for word in ("-c", f"{flag}={value}")]


def repeated_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags that the next deploy must repeat: the family, and those that differ from defaults.

    Those that the file of queues gives are left out, because the file may have changed since.
    """
    defaults = {flag: info.default for flag, info in Settings.model_fields.items() if flag != "family"}
    not_repeated = _OF_ONE_DEPLOY | flags_of_file(flags)
    return {
        flag: value
        for flag, value in flags.items()
        if flag not in not_repeated and str(value) != str(defaults.get(flag))
    }


def flags_of_file(flags: Mapping[str, Any]) -> set[str]:
    """Return the flags that the file of queues gives; none if it cannot be read, which the deploy refuses."""
    try:
        listed = read_queues(str(flags["queues"])) if flags.get("queues") else {}
    except ConfigurationError:
        return set()
    entry = listed.get(str(flags.get("queue_name")))
    return {"family", *flags_of(entry)} if entry else set()
