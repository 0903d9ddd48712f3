"""An account to deploy to: a local AWS, bootstrapped for the CDK, and the CDK CLI that reaches it alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rehearsal.cdk import CdkCli
from rehearsal.local_aws.address import ACCOUNT, REGION, LocalAwsAddress
from rehearsal.local_aws.process import LocalAws
from rehearsal.narrator import Narrator
from training_cluster.paths import ROOT


@dataclass(frozen=True, kw_only=True)
class LocalAccount:
    """A running local AWS, with the environment and the CDK CLI that reach it."""

    address: LocalAwsAddress
    environment: dict[str, str]
    """Environment variables of its clients."""
    cdk: CdkCli


@contextmanager
def local_account(
    folder: Path,
    *,
    marker: tuple[str, str],
    narrator: Narrator,
    region: str = REGION,
    logs: Path | None = None,
) -> Iterator[LocalAccount]:
    """Start a local AWS and bootstrap it; stop it at the end.

    Args:
        folder: takes all files that it writes; created if missing.
        marker: environment variable of all its processes.
        logs: takes the logs of the CDK CLI; `folder` by default.

    Raises:
        RehearsalError: it does not start, or the bootstrap fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with LocalAws(folder=folder, marker=marker, region=region) as address:
        environment = address.client_environment() | dict([marker])
        cdk = CdkCli(project=ROOT, environment=environment, logs=logs or folder, narrator=narrator)
        cdk.run("bootstrap", f"aws://{ACCOUNT}/{region}", output=folder / "cdk.out")
        yield LocalAccount(address=address, environment=environment, cdk=cdk)
