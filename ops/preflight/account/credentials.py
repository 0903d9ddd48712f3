"""Checks of the credentials, the region and the CDK bootstrap."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ops.account.aws_errors import enable_region_command
from ops.account.session import ClientOf, read_parameter
from ops.preflight.finding import Finding, finding
from ops.usage import OpsError

QUALIFIER_KEY = "@aws-cdk/core:bootstrapQualifier"
"""Context key for a bootstrap qualifier other than the CDK's default."""
DEFAULT_QUALIFIER = "hnb659fds"
LEAST_BOOTSTRAP = 6
"""Least bootstrap version of our assemblies (requiresBootstrapStackVersion; compared in a test)."""
_SIGN_IN = (
    "aws configure sso, or aws configure, with a user or role with fewer permissions; then --profile NAME"
)


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Account and principal of the credentials."""

    account: str
    arn: str


def read_identity(client: ClientOf) -> Identity:
    """Ask STS, which needs no permission.

    Raises OpsError and botocore's errors, because no other check works without an answer.
    """
    answer = client("sts").get_caller_identity()
    account, arn = answer.get("Account"), answer.get("Arn")
    if not account or not arn:
        raise OpsError(
            f"STS does not name the owner of these credentials: account {account}, {arn}\n"
            "  type:   aws sts get-caller-identity"
        )
    return Identity(account=account, arn=arn)


def check_identity(identity: Identity) -> Iterator[Finding]:
    """Warn of the account's root user, whose permissions nobody can restrict."""
    is_root = identity.arn.endswith(":root")
    who = "the root user" if is_root else identity.arn
    yield finding(
        "credentials",
        f"account {identity.account}, {who}",
        good=not is_root,
        otherwise="warning",
        mend=_SIGN_IN,
    )


def check_region(ec2: Any) -> Iterator[Finding]:
    """Check that the region is enabled in the account."""
    name = ec2.meta.region_name
    found = ec2.describe_regions(AllRegions=True, Filters=[{"Name": "region-name", "Values": [name]}])
    states = [each.get("OptInStatus", "") for each in found["Regions"] if each["RegionName"] == name]
    yield finding(
        f"region {name}",
        states[0] if states else "EC2 has no such region",
        good=states in (["opt-in-not-required"], ["opted-in"]),
        mend=enable_region_command(name) if states else "export AWS_REGION=...",
    )


def check_bootstrap(identity: Identity, ssm: Any, *, qualifier: str = DEFAULT_QUALIFIER) -> Iterator[Finding]:
    """Check that the region is bootstrapped for this qualifier, with a version that is new enough."""
    found = read_parameter(f"/cdk-bootstrap/{qualifier}/version", ssm)
    version = int(found) if found else None
    is_default = qualifier == DEFAULT_QUALIFIER
    # Another qualifier needs a stack of its own: the default one would lose the roles of other apps.
    own = "" if is_default else f" --qualifier {qualifier} --toolkit-stack-name CDKToolkit-{qualifier}"
    yield finding(
        "CDK bootstrap" if is_default else f"CDK bootstrap, qualifier {qualifier}",
        "missing here" if version is None else f"version {version}, of which {LEAST_BOOTSTRAP} is the least",
        good=version is not None and version >= LEAST_BOOTSTRAP,
        mend=f"npx cdk bootstrap aws://{identity.account}/{ssm.meta.region_name}{own}",
    )
