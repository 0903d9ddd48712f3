"""Checks of resources that the flags name: key pair, boundary, secret, placement group, spot's role."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from functools import partial
from typing import Any

from ops.account.session import ClientOf, unless
from ops.preflight.finding import Finding, finding
from training_cluster.advice.spot_role import CREATE_SPOT_ROLE, SPOT_ROLE
from training_cluster.cluster.deployed_ids import without_unmade
from training_cluster.cluster.fleet import compute_nodes
from training_cluster.flags.settings import Settings
from training_cluster.overrides.file import read_overrides
from training_cluster.overrides.nodes import node_buckets, node_policies, placement_groups
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.permissions.table import load

_IN_OVERRIDES = "in the file of overrides: "


def check_key(settings: Settings, ec2: Any) -> Iterator[Finding]:
    """Check the existing EC2 key pair that key_name names."""
    if not (name := settings.key_name):
        return
    found = ec2.describe_key_pairs(Filters=[{"Name": "key-name", "Values": [name]}])["KeyPairs"]
    kind = found[0].get("KeyType", "rsa") if found else None
    # ParallelCluster's KeyPairValidator: Ubuntu takes no RSA key.
    is_refused = kind is None or settings.os_name.startswith("ubuntu")
    yield finding(
        f"key_name {name}",
        kind or "missing",
        good=kind == "ed25519",
        otherwise="problem" if is_refused else "warning",
        mend="aws ec2 create-key-pair --key-type ed25519 --key-name NAME, then -c key_name=NAME",
    )


def check_boundary(settings: Settings, client: ClientOf) -> Iterator[Finding]:
    """Check the policy that bounds every role, also that of the provider, which makes the cluster."""
    if not (arn := settings.permissions_boundary):
        return
    iam, check = client("iam"), f"permissions_boundary {arn}"
    found = unless(lambda: iam.get_policy(PolicyArn=arn), "NoSuchEntity", "NoSuchEntityException")
    yield _there(check, found, "aws iam list-policies, then -c permissions_boundary=")
    if found:
        version = found["Policy"]["DefaultVersionId"]
        policy = iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]
        missing = _not_allowed(policy)
        yield finding(
            f"{check}: rights of the provider",
            f"it does not allow {len(missing)} actions" if missing else "not excluded",
            good=not missing,
            otherwise="problem" if any(each.startswith("iam:") for each in missing) else "warning",
            mend=f"allow these in it, or give another policy: {', '.join(missing)}",
        )


def check_node_policies(settings: Settings, client: ClientOf) -> Iterator[Finding]:
    """Check the user's policies for the nodes' roles, of all nodes and of some."""
    of_all = dict.fromkeys(settings.own_policies, "-c node_policies=")
    for arn, place in {**dict.fromkeys(node_policies(_overrides(settings)), _IN_OVERRIDES), **of_all}.items():
        get = partial(client("iam").get_policy, PolicyArn=arn)
        found = unless(get, "NoSuchEntity", "NoSuchEntityException")
        yield _there(f"node_policies {arn}", found, f"aws iam list-policies, then {place}")


def check_buckets(settings: Settings, client: ClientOf) -> Iterator[Finding]:
    """Check that the buckets of read_buckets and write_buckets exist, and some nodes' buckets."""
    of_all = dict.fromkeys(
        (each.partition("/")[0] for each in settings.readable_buckets),
        "-c read_buckets= or -c write_buckets=",
    )
    of_some = dict.fromkeys(node_buckets(_overrides(settings)), _IN_OVERRIDES)
    for bucket, place in sorted({**of_some, **of_all}.items()):
        found = unless(partial(client("s3").head_bucket, Bucket=bucket), "404", "NoSuchBucket")
        yield _there(f"bucket {bucket}", found, f"aws s3 ls, then {place}")


def check_secret(settings: Settings, client: ClientOf) -> Iterator[Finding]:
    """Check the secret with the password of an existing accounting database."""
    if arn := settings.accounting_secret:
        secrets = client("secretsmanager")
        found = unless(lambda: secrets.describe_secret(SecretId=arn), "ResourceNotFoundException")
        yield _there(
            "accounting_secret", found, "aws secretsmanager list-secrets, then -c accounting_secret="
        )


def check_spot_role(settings: Settings, client: ClientOf) -> Iterator[Finding]:
    """Check the role with which EC2 launches spot instances, because the head node may not create it."""
    if any(each.kind == "spot" for each in compute_nodes(config_before_deploy(settings))):
        found = unless(
            lambda: client("iam").get_role(RoleName=SPOT_ROLE), "NoSuchEntity", "NoSuchEntityException"
        )
        yield finding(
            f"capacity=spot: role {SPOT_ROLE}",
            "missing: no node would start" if found is None else "exists",
            good=found is not None,
            mend=CREATE_SPOT_ROLE,
        )


def check_placement_group(settings: Settings, ec2: Any) -> Iterator[Finding]:
    """Check existing placement groups: EFA requires the strategy cluster."""
    config, _ = without_unmade(config_before_deploy(settings))
    for name in dict.fromkeys(each["Name"] for each in placement_groups(config) if each.get("Name")):
        filters = [{"Name": "group-name", "Values": [name]}]
        found = ec2.describe_placement_groups(Filters=filters)["PlacementGroups"]
        strategy = found[0]["Strategy"] if found else None
        yield finding(
            f"placement_group {name}",
            strategy or "missing",
            good=strategy == "cluster",
            otherwise="problem" if strategy is None else "warning",
            mend="aws ec2 create-placement-group --strategy cluster --group-name NAME, then -c "
            "placement_group=NAME",
        )


def _not_allowed(policy: Mapping[str, Any]) -> list[str]:
    """Return the provider's actions that a policy allows on no resource, or denies on all of them."""
    given = policy["Statement"]
    statements = given if isinstance(given, list) else [given]

    def is_left_out(action: str) -> bool:
        of = [each for each in statements if _is_named(action, each)]
        denials = [each for each in of if each["Effect"] == "Deny"]
        everywhere = any(each.get("Resource") == "*" and "Condition" not in each for each in denials)
        return everywhere or of == denials

    # Actions of keys of overrides, which few clusters have, are in scopes of these names.
    rows = (row for row in load() if not all(each.startswith("Managed") for each in row.scopes))
    return sorted(row.action for row in rows if is_left_out(row.action))


def _is_named(action: str, statement: Mapping[str, Any]) -> bool:
    given = statement.get("Action", statement.get("NotAction"))
    patterns = given if isinstance(given, list) else [given]
    return any(fnmatch(action.lower(), each.lower()) for each in patterns) == ("Action" in statement)


def _overrides(settings: Settings) -> dict[str, Any]:
    return read_overrides(settings.overrides).content if settings.overrides else {}


def _there(check: str, found: Any, mend: str) -> Finding:
    return finding(check, "missing" if found is None else "exists", good=found is not None, mend=f"{mend}...")
