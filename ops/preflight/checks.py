"""Runs every check, in the order of the report, and prints it; one that fails hides no other."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ops.account.session import ClientOf
from ops.options import print_table
from ops.preflight.account.access import (
    check_boundary,
    check_buckets,
    check_key,
    check_node_policies,
    check_placement_group,
    check_secret,
    check_spot_role,
)
from ops.preflight.account.credentials import (
    DEFAULT_QUALIFIER,
    Identity,
    check_bootstrap,
    check_identity,
    check_region,
    read_identity,
)
from ops.preflight.account.directory import check_directory
from ops.preflight.account.name_conflicts import check_account, check_budget, check_names
from ops.preflight.account.volume_key import check_volume_key
from ops.preflight.capacity.quotas import (
    check_address_quota,
    check_interface_quota,
    check_lustre_quota,
    check_nat_quota,
    check_volume_quota,
    check_vpc_quota,
)
from ops.preflight.capacity.reservation import check_reservations
from ops.preflight.capacity.vcpus import check_vcpu_quotas
from ops.preflight.capacity.zone import Choice, check_instance_types, check_zone, choose_zone
from ops.preflight.config import check_config, check_validators
from ops.preflight.existing_network import ExistingNetwork, read_existing_network, unknown_network
from ops.preflight.finding import Finding
from ops.preflight.image import check_image
from ops.preflight.network.network import check_network
from ops.preflight.network.queue_subnets import check_queue_subnets
from ops.preflight.network.routes import check_endpoints, check_storage_zone
from ops.preflight.network.security_groups import check_node_group
from ops.preflight.not_checked import not_checked, run_isolated
from ops.preflight.sizes import check_sizes
from ops.preflight.storage import check_storage
from training_cluster.flags.settings import Settings

Check = tuple[str, Callable[[], Iterable[Finding]]]
"""Name of the check, and its function."""
_STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red"}


def run_checks(
    settings: Settings,
    client: ClientOf,
    *,
    dryrun: bool = False,
    qualifier: str = DEFAULT_QUALIFIER,
    starts: Callable[[str], None] = lambda _: None,
) -> list[Finding]:
    """Run the checks against the account, without changing anything.

    Args:
        dryrun: True to run ParallelCluster's validators, too, which takes up to a minute.
        qualifier: qualifier of the CDK's bootstrap.
        starts: is called with the name of each check before it begins.

    Raises:
        botocore's errors: there is no region, or STS does not answer, so no check can run.
    """
    starts("credentials")
    client("ec2")  # raises without a region, before any request
    identity = read_identity(client)
    starts("stacks and network")
    existing, findings = _existing(settings, client)
    findings = [*check_identity(identity), *findings]
    for name, check in _checks(settings, existing, identity, client, dryrun=dryrun, qualifier=qualifier):
        starts(name)
        findings += run_isolated(name, check)
    return findings


def _existing(settings: Settings, client: ClientOf) -> tuple[ExistingNetwork, list[Finding]]:
    try:
        return read_existing_network(settings, client), []
    except Exception as error:  # the other checks continue
        return unknown_network(settings), [not_checked("stacks and network, assumed to be missing", error)]


def _checks(
    settings: Settings,
    existing: ExistingNetwork,
    identity: Identity,
    client: ClientOf,
    *,
    dryrun: bool,
    qualifier: str,
) -> Iterator[Check]:
    ec2, account = client("ec2"), identity.account

    @cache
    def zone() -> Choice:
        return choose_zone(settings, existing, client)

    yield f"region {ec2.meta.region_name}", partial(check_region, ec2)
    yield "CDK bootstrap", lambda: check_bootstrap(identity, client("ssm"), qualifier=qualifier)
    yield "conflicting stack names", partial(check_account, settings, existing, ec2.meta.region_name)
    yield "names of the cluster", partial(check_names, settings, existing, client)
    yield "budget_usd", partial(check_budget, settings, account, client)
    yield "zone", partial(check_zone, zone, settings, existing)
    yield "network", partial(check_network, settings, existing, account, ec2)
    yield "subnets of queues", partial(check_queue_subnets, settings, existing, client)
    yield "security group", partial(check_node_group, settings, ec2)
    yield "instance types", partial(check_instance_types, settings, existing, client)
    yield "endpoints", partial(check_endpoints, settings, zone, ec2)
    yield "zone of file systems", partial(check_storage_zone, settings, existing, zone, ec2)
    yield "capacity", partial(check_reservations, settings, existing, client)
    yield "quota of vCPUs", partial(check_vcpu_quotas, settings, account, client)
    yield "quota of VPCs", partial(check_vpc_quota, settings, existing, client)
    yield "quota of elastic IP addresses", partial(check_address_quota, settings, existing, client)
    yield "quota of NAT gateways", partial(check_nat_quota, settings, existing, zone, client)
    yield "quota of network interfaces", partial(check_interface_quota, settings, client)
    yield "quota of gp3 volumes", partial(check_volume_quota, settings, client)
    yield "quota of Lustre", partial(check_lustre_quota, settings, existing, client)
    yield "storage", partial(check_storage, settings, existing, client)
    yield "sizes of the storage", partial(check_sizes, settings, existing, client)
    yield "key of the root volumes", partial(check_volume_key, account, client)
    yield "image", partial(check_image, settings, existing, client)
    yield "key_name", partial(check_key, settings, ec2)
    yield "permissions_boundary", partial(check_boundary, settings, client)
    yield "node_policies", partial(check_node_policies, settings, client)
    yield "buckets", partial(check_buckets, settings, client)
    yield "directory", partial(check_directory, settings, client)
    yield "role of spot instances", partial(check_spot_role, settings, client)
    yield "accounting_secret", partial(check_secret, settings, client)
    yield "placement_group", partial(check_placement_group, settings, ec2)
    yield "cluster config", partial(check_config, settings)
    if dryrun:
        yield (
            "cluster config: ParallelCluster's validators, up to a minute",
            partial(check_validators, settings, existing, client),
        )


def problem_count(findings: Sequence[Finding]) -> int:
    """Count the findings with which the deploy or the cluster would fail."""
    return sum(each.verdict == "problem" for each in findings)


def report(findings: Sequence[Finding], console: Console) -> int:
    """Print a table, and below it the commands to type; return 1 if there is a problem."""
    table = Table("check", "found", "", box=box.SIMPLE_HEAD, pad_edge=False)
    for each in findings:
        table.add_row(Text(each.check), Text(each.found), Text(each.verdict, style=_STYLES[each.verdict]))
    print_table(table, console)
    for each in findings:
        if each.mend:
            console.print(Text(f"{each.verdict}: {each.check}: {each.found}"))
            for number, line in enumerate(each.mend.splitlines()):
                console.print(Text(f"  {'        ' if number else 'type:   '}{line}"))
    if problems := problem_count(findings):
        console.print(Text(f"{problems} problem(s): the deploy would fail, or the cluster would not work."))
    return 1 if problems else 0
