"""One local AWS for the tests of the deployed stacks, with the real CDK CLI and the real library."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from rehearsal.account import local_account
from rehearsal.cdk import CdkCli
from rehearsal.deployed import client_options
from rehearsal.local_aws.address import LocalAwsAddress, tools_path
from rehearsal.local_aws.rights.denied import refuse_denied_calls
from rehearsal.narrator import Narrator
from training_cluster.paths import ROOT

# Scripts of nodes call `aws`.
os.environ["PATH"] = tools_path()
HERE = Path(__file__).parent


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the largest slow modules first, so that no worker ends long after the others.

    pytest-xdist keeps this order with --no-loadscope-reorder. A module's size tells its time well enough.
    """
    items.sort(key=lambda item: (HERE not in item.path.parents, -item.path.stat().st_size))


@dataclass(frozen=True, kw_only=True)
class Cloud:
    """A running local AWS, and a person's commands for it."""

    address: LocalAwsAddress
    cdk: CdkCli
    folder: Path

    def client(self, service: str) -> Any:
        """Return a boto3 client of one service."""
        url = self.address.s3_url if service == "s3" else self.address.url
        return boto3.client(service, endpoint_url=url, **client_options(self.address))  # type: ignore[call-overload]

    def deploy(self, *flags: str) -> None:
        """Run `cdk deploy TrainingClusterStack`. Raises RehearsalError if it fails."""
        context = [part for flag in flags for part in ("-c", flag)]
        deploy = ("deploy", "TrainingClusterStack", "--require-approval", "never")
        self.cdk.run(*deploy, *context, output=self.folder / "cdk.out")

    def destroy(self, *flags: str) -> None:
        """Run `cdk destroy TrainingClusterStack --force`."""
        context = [part for flag in flags for part in ("-c", flag)]
        self.cdk.run("destroy", "TrainingClusterStack", "--force", *context, output=self.folder / "cdk.out")

    def trainctl(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `trainctl` with this account."""
        return subprocess.run(
            [sys.executable, "-m", "ops", *arguments],
            cwd=ROOT,
            env=self.address.client_environment(),
            capture_output=True,
            text=True,
            check=False,
        )

    def stack(self, name: str) -> dict[str, Any] | None:
        """Describe a stack; None if there is none."""
        try:
            found: dict[str, Any] = self.client("cloudformation").describe_stacks(StackName=name)["Stacks"][0]
        except self.client("cloudformation").exceptions.ClientError:
            return None
        return found


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """Start a local AWS, bootstrapped for the CDK; at the end, no call of a function lacked a right."""
    folder = tmp_path_factory.mktemp("aws")
    marker = ("TRAINING_CLUSTER_TEST", str(folder))
    with local_account(folder, marker=marker, narrator=Narrator()) as account:
        yield Cloud(address=account.address, cdk=account.cdk, folder=folder)
        refuse_denied_calls(account.address)
