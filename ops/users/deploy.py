"""The users file of a cluster, and the deploy that applies it with the flags of the last deploy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ops.account.clusters import describe_cluster
from ops.account.deploy_command import deploy_command, deploy_words
from ops.account.deployed_flags import flags_or_none, read_flags
from ops.account.session import ClientOf
from ops.context import read_context
from ops.usage import OpsError
from training_cluster.paths import ROOT
from training_cluster.stack_names import DEFAULT_CLUSTER

_DEFAULT_FILE = "users.yaml"


@dataclass(frozen=True, kw_only=True)
class UsersDeploy:
    """A users file, and the cluster that it is for."""

    cluster_name: str
    file: Path
    flags: Mapping[str, Any] | None
    """Flags of the last deploy; empty without one, None if they are unknown."""
    given: Mapping[str, str]
    """Flags of the command line."""

    @property
    def command(self) -> str:
        """Command that applies the file, for people."""
        return deploy_command(self.cluster_name, self.flags, **self._changed)

    @property
    def words(self) -> list[str] | None:
        """Words of the command; None if the flags of the last deploy are unknown."""
        return None if self.flags is None else deploy_words(self.cluster_name, self.flags, **self._changed)

    @property
    def _changed(self) -> dict[str, str]:
        file = self.file.relative_to(ROOT) if self.file.is_relative_to(ROOT) else self.file
        return {"users": str(file)} | {flag: value for flag, value in self.given.items() if flag != "users"}


def find_users_file(file: Path | None, pairs: Sequence[str], client: ClientOf) -> Path:
    """Return the file that the user named, else the flag `users`, else the last deploy's.

    Args:
        pairs: FLAG=VALUE pairs of the command line.

    Raises:
        ConfigurationError: a pair is not FLAG=VALUE.
        OpsError: the file of the last deploy is missing.
    """
    if file:
        return file.absolute()
    context = read_context(pairs)
    if given := context.get("users"):
        return ROOT / str(given)
    name = _cluster_name(context)
    deployed = (flags_or_none(name, client) or {}).get("users")
    found = ROOT / str(deployed or _DEFAULT_FILE)
    if deployed and not found.exists():
        raise OpsError(
            f"{name} was deployed with users={deployed}, and there is no {found}.\n"
            "  type:   --file FILE, the file of its users: a deploy locks everyone who is not in it"
        )
    return found


def users_deploy(
    file: Path, pairs: Sequence[str], client: ClientOf, *, will_run: bool = False
) -> UsersDeploy:
    """Read the flags of the last deploy, for the deploy of a users file.

    Args:
        pairs: FLAG=VALUE pairs of the command line.
        will_run: True if the deploy will run: then its flags must be known.

    Raises:
        ConfigurationError: a pair is not FLAG=VALUE.
        OpsError: the deploy will run, and there is no cluster, or its last deploy recorded no flags.
        botocore's errors: the deploy will run, and AWS does not answer.
    """
    name = _cluster_name(read_context(pairs))
    return UsersDeploy(
        cluster_name=name,
        file=file,
        flags=_known_flags(name, client) if will_run else flags_or_none(name, client),
        given=dict(pair.split("=", 1) for pair in pairs),
    )


def _cluster_name(context: Mapping[str, Any]) -> str:
    return str(context.get("cluster_name") or DEFAULT_CLUSTER)


def _known_flags(name: str, client: ClientOf) -> dict[str, Any]:
    describe_cluster(name, client)
    flags = read_flags(name, client)
    if flags is None:
        raise OpsError(
            f"The last deploy of {name} recorded no flags, and a deploy without them would undo them.\n"
            f"  type:   the command without --apply, then {deploy_command(name, None)}"
        )
    return flags
