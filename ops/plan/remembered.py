"""The flags of a deploy that starts from those of the last one."""

from collections.abc import Sequence

from ops.account.deploy_command import deploy_command, repeated_flags
from ops.account.deployed_flags import read_flags
from ops.account.session import ClientOf
from ops.context import read_context
from ops.usage import OpsError
from training_cluster.flags.flag import is_file
from training_cluster.flags.settings import Settings
from training_cluster.paths import ROOT
from training_cluster.stack_names import DEFAULT_CLUSTER

_FILES = {flag for flag, info in Settings.model_fields.items() if is_file(info)}


def remembered(pairs: Sequence[str], client: ClientOf, *, must_know: bool) -> list[str]:
    """Return FLAG=VALUE pairs: the last deploy's that nobody gives now, then those of the command line.

    Args:
        must_know: False for the pairs of the command line alone where the last deploy recorded no flags.

    Raises:
        ConfigurationError: a pair is not FLAG=VALUE, or the file of flags cannot be used.
        OpsError: the last deploy recorded no flags, and must_know, or a file of its flags is missing here.
        botocore's errors.
    """
    given = read_context(pairs)
    name = str(given.get("cluster_name") or DEFAULT_CLUSTER)
    last = read_flags(name, client)
    if last is None and not must_know:
        return [*pairs]
    if last is None:
        raise OpsError(
            f"The last deploy of {name} recorded no flags, and a deploy without them would undo them.\n"
            f"  type:   {deploy_command(name, None)}"
        )
    kept = {flag: value for flag, value in repeated_flags(last).items() if flag not in given}
    for flag, other in (("instance_type", "family"), ("family", "instance_type")):
        if given.get(flag):
            kept.pop(other, None)  # a type decides the family
    for flag in kept.keys() & _FILES:
        if not (ROOT / str(kept[flag])).is_file():
            raise OpsError(
                f"{name} was deployed with {flag}={kept[flag]}, and there is no {ROOT / str(kept[flag])}.\n"
                f"  type:   -c {flag}=FILE, or -c {flag}= to deploy without one"
            )
    return [*(f"{flag}={value}" for flag, value in kept.items()), *pairs]
