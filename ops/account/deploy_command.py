"""The commands that deploy."""

import shlex
from collections.abc import Iterable

from training_cluster.flags.given import given_flags
from training_cluster.flags.settings import Settings


def deploy_command(cluster: str | None, *pairs: str) -> str:
    """Return the command that deploys a cluster with the flags of its last deploy, and FLAG=VALUE pairs.

    The cluster is always named, since cdk.json or a pair may name another one; None: it is not known.
    """
    named = ["--cluster", cluster] if cluster else []
    return shlex.join(["trainctl", "deploy", *named, *_options(pairs)])


def cdk_words(stack_ids: Iterable[str], pairs: Iterable[str]) -> list[str]:
    """Return the words of `cdk deploy`, which gives each flag that is left out its default."""
    return ["npx", "cdk", "deploy", *stack_ids, *_options(pairs)]


def stacks_command(stack_ids: Iterable[str], settings: Settings) -> str:
    """Return the command that deploys shared stacks with the flags that a user typed."""
    pairs = [f"{flag}={value}" for flag, value in given_flags(settings).items()]
    return shlex.join(cdk_words(stack_ids, pairs))


def _options(pairs: Iterable[str]) -> list[str]:
    return [word for pair in pairs for word in ("-c", pair)]
