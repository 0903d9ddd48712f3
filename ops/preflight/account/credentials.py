"""Who deploys, where, and whether the CDK can."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ops.account.aws_errors import enable_region_command
from ops.account.session import ClientOf, unless
from ops.preflight.finding import Finding, judged
from ops.usage import OpsError

QUALIFIER_KEY = "@aws-cdk/core:bootstrapQualifier"
"""The context key that names another qualifier than the CDK's own."""
DEFAULT_QUALIFIER = "hnb659fds"
LEAST_BOOTSTRAP = 6
"""What the CDK writes into our assemblies (requiresBootstrapStackVersion; compared in a test)."""
_SIGN_IN = "aws configure sso, or aws configure, with a user or role of less rights; then --profile NAME"


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Whose credentials these are."""

    account: str
    arn: str


def read_identity(client: ClientOf) -> Identity:
    """Ask STS, for which nobody needs a right.

    Raises OpsError and botocore's errors: without an answer nothing works.
    """
    answer = client("sts").get_caller_identity()
    account, arn = answer.get("Account"), answer.get("Arn")
    if not account or not arn:
        raise OpsError(
            f"STS does not say whose credentials these are: account {account}, {arn}\n"
            "  type:   aws sts get-caller-identity"
        )
    return Identity(account=account, arn=arn)


def check_identity(identity: Identity) -> Iterator[Finding]:
    """The account's root user can do it, and should not: nobody can take a right from it."""
    is_root = identity.arn.endswith(":root")
    who = "the root user" if is_root else identity.arn
    yield judged(
        "credentials", f"account {identity.account}, {who}", good=not is_root, else_="warning", mend=_SIGN_IN
    )


def check_region(ec2: Any) -> Iterator[Finding]:
    """Whether the account has this region on."""
    name = ec2.meta.region_name
    found = ec2.describe_regions(AllRegions=True, Filters=[{"Name": "region-name", "Values": [name]}])
    states = [each.get("OptInStatus", "") for each in found["Regions"] if each["RegionName"] == name]
    yield judged(
        f"region {name}",
        states[0] if states else "EC2 knows no such region",
        good=states in (["opt-in-not-required"], ["opted-in"]),
        mend=enable_region_command(name) if states else "export AWS_REGION=...",
    )


def check_bootstrap(identity: Identity, ssm: Any, *, qualifier: str = DEFAULT_QUALIFIER) -> Iterator[Finding]:
    """Look whether `cdk bootstrap` was typed here for this qualifier, and not too long ago."""
    parameter = f"/cdk-bootstrap/{qualifier}/version"
    answer = unless(lambda: ssm.get_parameter(Name=parameter), "ParameterNotFound")
    version = int(answer["Parameter"]["Value"]) if answer else None
    is_default = qualifier == DEFAULT_QUALIFIER
    # A stack of its own: the CDK's would change over to this qualifier, and lose the roles of other apps.
    own = "" if is_default else f" --qualifier {qualifier} --toolkit-stack-name CDKToolkit-{qualifier}"
    yield judged(
        "CDK bootstrap" if is_default else f"CDK bootstrap, qualifier {qualifier}",
        "not done here" if version is None else f"version {version}, of which {LEAST_BOOTSTRAP} is the least",
        good=version is not None and version >= LEAST_BOOTSTRAP,
        mend=f"npx cdk bootstrap aws://{identity.account}/{ssm.meta.region_name}{own}",
    )
