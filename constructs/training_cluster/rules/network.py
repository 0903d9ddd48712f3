"""Rules between the flags of the network."""

from collections.abc import Callable, Iterator

from training_cluster.flags.network import is_wide
from training_cluster.flags.settings import Settings
from training_cluster.problems import Contradiction


def _own_network_is_complete(settings: Settings) -> Iterator[Contradiction]:
    own, is_public = ("vpc_id", "public_subnet_id", "private_subnet_id"), settings.public_access == "on"
    given = [flag for flag in (*own, "security_group_id") if getattr(settings, flag)]
    needed = own if is_public else ("vpc_id", "private_subnet_id")
    missing = [flag for flag in needed if not getattr(settings, flag)]
    if given and missing:
        count = {2: "both", 3: "all three"}[len(needed)]
        yield Contradiction(
            problem=f"{given[0]} is given, but not {' and '.join(missing)}: your own network needs {count}",
            mend=" ".join(f"-c {flag}=..." for flag in missing)
            + (", or -c public_access=off" if missing == ["public_subnet_id"] else ""),
        )
    if given and settings.zone != "auto":
        yield Contradiction(
            problem=f"zone={settings.zone}: the zone follows from {given[0]}",
            mend="leave zone out",
        )
    same = settings.public_subnet_id is not None and settings.public_subnet_id == settings.private_subnet_id
    if same and is_public:
        yield Contradiction(
            problem=f"public_subnet_id and private_subnet_id are both {settings.public_subnet_id}; nodes "
            "with EFA need a subnet without public addresses",
            mend="-c private_subnet_id=..., or -c public_access=off for one private subnet",
        )


def _own_network_is_left_alone(settings: Settings) -> Iterator[Contradiction]:
    if settings.vpc_id and settings.endpoints == "private":
        yield Contradiction(
            problem="endpoints=private adds endpoints to the VPC of this app; an existing VPC is not changed",
            mend="-c endpoints=none, and add them yourself",
        )
    if settings.security_group_id and settings.ssh_from:
        yield Contradiction(
            problem=f"ssh_from={settings.ssh_from} adds a rule to the app's security group; your own is used "
            "unchanged",
            mend="leave ssh_from out, and open port 22 there",
        )


def _the_world_stays_out(settings: Settings) -> Iterator[Contradiction]:
    if settings.ssh_from and is_wide(settings.ssh_from) and settings.ssh_from_anywhere == "no":
        yield Contradiction(
            problem=f"ssh_from={settings.ssh_from} opens port 22 to the internet",
            mend="-c ssh_from=YOUR.ADDRESS/32, or, if you mean it: -c ssh_from_anywhere=yes",
        )
    if settings.ssh_from_anywhere == "yes" and not settings.ssh_from:
        yield Contradiction(
            problem="ssh_from_anywhere=yes has no effect without ssh_from", mend="-c ssh_from=0.0.0.0/0"
        )


NETWORK_RULES: tuple[Callable[[Settings], Iterator[Contradiction]], ...] = (
    _own_network_is_complete,
    _own_network_is_left_alone,
    _the_world_stays_out,
)
