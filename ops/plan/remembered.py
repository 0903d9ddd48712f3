"""The flags of a deploy that starts from those of the last one."""

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ops.account.deploy_command import cdk_words
from ops.account.deployed_flags import read_flags
from ops.account.session import ClientOf
from ops.account.stacks import deployed_name
from ops.context import read_context
from ops.usage import OpsError
from training_cluster.flags.flag import facts_of
from training_cluster.flags.settings import Settings
from training_cluster.paths import ROOT
from training_cluster.problems import ConfigurationError
from training_cluster.queues.file import flags_of_file
from training_cluster.rules.context import read_settings
from training_cluster.stack_names import CLUSTER_STACK, DEFAULT_CLUSTER


def kept_flags(
    pairs: Sequence[str], client: ClientOf, *, of: str | None = None, must_know: bool
) -> dict[str, Any]:
    """Return the flags of the last deploy that nobody gives now, on the command line or in a file.

    Args:
        pairs: FLAG=VALUE pairs of the command line.
        of: the cluster of the last deploy; None for the one that is deployed.
        must_know: False for no flags where the last deploy recorded none.

    Raises:
        ConfigurationError: a pair is not FLAG=VALUE, or a file of flags or queues cannot be used.
        OpsError: the last deploy recorded no flags, and must_know, or a file of its flags is missing here.
        botocore's errors.
    """
    given = read_context(pairs)
    name = of or str(given.get("cluster_name") or DEFAULT_CLUSTER)
    name = deployed_name(name, client, or_failed=False)
    if (last := read_flags(name, client)) is None and must_know:
        named = [] if "cluster_name" in given or name == DEFAULT_CLUSTER else [f"cluster_name={name}"]
        raise OpsError(
            f"The last deploy of {name} recorded no flags, and a deploy without them would undo them.\n"
            f"  type:   {shlex.join(cdk_words([CLUSTER_STACK], [*named, *pairs]))}, with its other flags"
        )
    last = {"cluster_name": name, **(last or {})}
    for flag in last.keys() - Settings.model_fields:
        print(
            f"left out: {flag}={last[flag]} of the last deploy, which this release does not have",
            file=sys.stderr,
        )
    kept = {flag: value for flag, value in last.items() if flag not in given and _is_kept(flag, value)}
    _check_files(kept, name)
    together = {**kept, **given}
    queue = flags_of_file(together.get("queues"), together.get("queue_name"))
    for flag, other in (("instance_type", "family"), ("family", "instance_type")):
        if given.get(flag) or flag in queue:
            kept.pop(other, None)  # a type decides the family
    kept = {flag: value for flag, value in kept.items() if flag not in queue}
    if kept and (file := given.get("flags")):
        words = ", ".join(f"{flag}={value}" for flag, value in kept.items())
        print(f"kept from the last deploy, and not in {file}: {words}", file=sys.stderr)
    return kept


def read_remembered(kept: Mapping[str, Any], pairs: Sequence[str]) -> tuple[list[str], Settings]:
    """Return the FLAG=VALUE pairs of the deploy, and what they say.

    Raises:
        ConfigurationError: the flags contradict each other; it names the kept ones that have to go, too.
    """

    def read(flags: Iterable[str]) -> tuple[list[str], Settings]:
        both = [*(f"{flag}={kept[flag]}" for flag in flags), *pairs]
        return both, read_settings(read_context(both))

    try:
        return read(kept)
    except ConfigurationError as error:
        had = " ".join(f"-c {shlex.quote(f'{flag}={value}')}" for flag, value in kept.items()) or "none"
        gone = " ".join(f"-c {flag}=" for flag in _in_the_way(kept, read))
        also = f"\n  to give up what is in the way, type the same with: {gone}" if gone else ""
        raise ConfigurationError(f"{error}\n  kept from the last deploy: {had}{also}") from None


def _is_kept(flag: str, value: object) -> bool:
    info = Settings.model_fields.get(flag)
    if info is None:
        return False  # another release's, which this one cannot deploy with
    return facts_of(info).is_remembered and (flag == "family" or str(value) != str(info.default))


def _check_files(kept: Mapping[str, Any], name: str) -> None:
    for flag, value in kept.items():
        if facts_of(Settings.model_fields[flag]).is_file and not (ROOT / str(value)).is_file():
            raise OpsError(
                f"{name} was deployed with {flag}={value}, and there is no {ROOT / str(value)}.\n"
                f"  type:   -c {flag}=FILE, or -c {flag}= to deploy without one"
            )


def _in_the_way(kept: Mapping[str, Any], read: Callable[[Iterable[str]], object]) -> list[str]:
    """Return the fewest kept flags without which the others agree; none where only the given ones do not."""

    def agree(without: Iterable[str]) -> bool:
        try:
            read(kept.keys() - without)
        except ConfigurationError:
            return False
        return True

    # Without its family, a cluster would get that of the default.
    gone = [flag for flag in kept if flag != "family"]
    if not agree(gone):
        return []
    for flag in kept:
        rest = [each for each in gone if each != flag]
        gone = rest if agree(rest) else gone
    return gone
