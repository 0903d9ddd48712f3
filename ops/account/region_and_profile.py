"""Applies --region and --profile to boto3, to started programs and to printed commands."""

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from ops.usage import UsageError

# A --profile of the AWS CLI leaves these unread (botocore.credentials.create_credential_resolver), while a
# profile that AWS_PROFILE names loses against them (AWS_DEFAULT_PROFILE: botocore.configprovider).
_OTHER_CREDENTIALS = (
    "AWS_DEFAULT_PROFILE",
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN"),
    *("AWS_CREDENTIAL_EXPIRATION", "AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME", "AWS_WEB_IDENTITY_TOKEN_FILE"),
)
_FILES = (Path(__file__).parents[1] / "commands").rglob("[a-z]*.py")
_SUBCOMMANDS = "|".join(sorted({"deploy", "import", *(path.stem.replace("_", "-") for path in _FILES)}))
_IN_PROSE = r"(?<![\w./'-])"
# The rest of a command, as far as an option of its own could be in it.
_HAS_REGION = r"[^;|&)\n]*--region[ =]"
_AWS = re.compile(rf"{_IN_PROSE}aws (?=[a-z][a-z0-9-]* [a-z]|(?:login|configure)\b)(?P<own>{_HAS_REGION})?")
_CDK = re.compile(rf"{_IN_PROSE}npx cdk (?=[a-z])")
_TRAINCTL = re.compile(rf"{_IN_PROSE}trainctl (?=(?:{_SUBCOMMANDS})\b)")
_PCLUSTER = re.compile(rf"{_IN_PROSE}(pcluster [a-z]+-[a-z-]+)(?=\s|$)")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_BOTO3 = re.compile(r"\.venv/bin/python -c 'import boto3")


@dataclass(frozen=True, kw_only=True)
class _Chosen:
    region: str | None = None
    profile: str | None = None
    user: str | None = None
    dropped: tuple[str, ...] = ()
    """Variables with credentials that the profile replaces."""

    @property
    def environment(self) -> str:
        """Prefix for the command line of a program without a --profile option."""
        if not self.profile:
            return ""
        without = "".join(f"-u {name} " for name in self.dropped)
        return f"{f'env {without}' if without else ''}AWS_PROFILE={shlex.quote(self.profile)} "


_chosen = _Chosen()


def choose_account(*, region: str | None, profile: str | None, user: str | None = None) -> None:
    """Set the account and region for boto3 and for started programs, like the AWS CLI's options.

    Args:
        user: user of the cluster as whom commands run on the head node; None for the caller's own.

    Raises:
        UsageError: the user's name contains a character that no Linux user's name has.
    """
    if user is not None and not _USER.fullmatch(user):
        raise UsageError(
            f'--as "{user}": not the name of a user.\n'
            "  allowed: letters, digits and _ . -\n  type:    trainctl --as alice ..."
        )
    global _chosen  # noqa: PLW0603 - one command line, one account
    dropped = tuple(name for name in _OTHER_CREDENTIALS if profile and name in os.environ)
    _chosen = _Chosen(region=region, profile=profile, user=user, dropped=dropped)
    if region:
        os.environ["AWS_REGION"] = os.environ["AWS_DEFAULT_REGION"] = region
    if profile:
        os.environ["AWS_PROFILE"] = profile
        for name in dropped:
            del os.environ[name]


def chosen_user() -> str | None:
    """Return the user of --as; None without it."""
    return _chosen.user


def with_account(text: str) -> str:
    """Add the region and profile of this command line to each command in a text.

    Every line that a user pastes then reaches the account that was read.
    """
    region = f"--region {shlex.quote(_chosen.region)} " if _chosen.region else ""
    profile = f"--profile {shlex.quote(_chosen.profile)} " if _chosen.profile else ""
    user = f"--as {shlex.quote(_chosen.user)} " if _chosen.user else ""
    if not (region or profile or user):
        return text
    in_region = f"AWS_REGION={shlex.quote(_chosen.region)} " if _chosen.region else ""  # cdk has no --region
    text = _AWS.sub(lambda found: f"aws {profile}{'' if found['own'] else region}{found['own'] or ''}", text)
    text = _CDK.sub(lambda _: f"{in_region}npx cdk {profile}", text)
    text = _TRAINCTL.sub(lambda _: f"trainctl {region}{profile}{user}", text)
    text = _PCLUSTER.sub(lambda found: f"{_chosen.environment}{found[1]} {region}".rstrip(), text)
    return _BOTO3.sub(lambda found: f"{_chosen.environment}{in_region}{found[0]}", text)
