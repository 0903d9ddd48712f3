"""Checks requests to `trainctl registry` and images of Amazon ECR; names the script on the head node."""

import re
import shlex
from collections.abc import Sequence

from botocore.exceptions import ClientError

from ops.account.session import ClientOf
from ops.usage import OpsError, UsageError
from training_cluster.catalog.families import load_base
from training_cluster.problems import did_you_mean

ACTIONS = ("login", "logout", "list")
NVIDIA = "nvcr.io"
# What assets/training/registry.sh takes.
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?")
_ECR = re.compile(r"([0-9]{12})\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")
# container_image.sh has all forms.
_IMAGE = re.compile(rf"(?:docker://)?{_ECR.pattern}[/#]([^:@]+)(?::([^@]+))?(?:@(.+))?")
_USER = re.compile(r"[A-Za-z0-9_.+@-]+")


def check(action: str, host: str | None, user: str | None) -> list[str]:
    """Return the words for registry.sh: the action, the host, the user.

    Raises:
        UsageError: an unknown action, no host name, or a user that is missing or is none.
    """
    if action not in ACTIONS:
        raise UsageError(
            f"registry {action}: no such action.{did_you_mean(action, ACTIONS)}\n"
            f"  allowed: {', '.join(ACTIONS)}\n  type:    trainctl registry login {NVIDIA}"
        )
    if action == "list":
        if host is not None or user is not None:
            raise UsageError(
                "registry list takes no host and no --user: it lists all registries.\n"
                "  type:    trainctl registry list"
            )
        return [action]
    if host is None or not _HOST.fullmatch(host) or not {".", ":"} & set(host):
        raise UsageError(
            f"registry {action}: {'no host is given' if host is None else f'{host!r} is not a host name'}.\n"
            "  allowed: the host name of a registry, without https:// and without the image\n"
            f"  type:    trainctl registry {action} {NVIDIA}"
        )
    if action == "logout" or needs_no_password(host) or host == NVIDIA:
        if user is not None:
            raise UsageError(f"--user: registry {action} {host} takes none.")
        return [action, host]
    if user is None or not _USER.fullmatch(user):
        what = "--user is missing" if user is None else f"--user {user!r}: no name of a user"
        raise UsageError(
            f"{what}.\n  allowed: letters, digits and _ . + @ -\n"
            f"  type:    trainctl registry login {host} --user NAME"
        )
    return [action, host, user]


def needs_no_password(host: str) -> bool:
    """Return True for a registry of Amazon, which the nodes' role opens."""
    return _ECR.fullmatch(host) is not None


def check_image(image: str, client: ClientOf) -> None:
    """Raise OpsError if an image is not in its repository of Amazon ECR, as far as the caller may read it.

    Args:
        client: boto3's, of the cluster's region. Repositories of other regions are not asked.
    """
    if not (found := _IMAGE.fullmatch(image)) or found[2] != (ecr := client("ecr")).meta.region_name:
        return
    account, _, name, tag, digest = found.groups()
    of = {"imageDigest": digest} if digest else {"imageTag": tag or "latest"}
    try:
        ecr.describe_images(registryId=account, repositoryName=name, imageIds=[of])
    except ClientError as error:
        if error.response["Error"]["Code"] in ("RepositoryNotFoundException", "ImageNotFoundException"):
            listing = f"aws ecr describe-images --registry-id {account} --repository-name {name}"
            raise OpsError(f"There is no image {image}.\n  type:   {listing}") from None


def script(words: Sequence[str]) -> str:
    """Return the command for the head node."""
    return shlex.join(["bash", f"{load_base().shared_dir}/training/registry.sh", *words])
