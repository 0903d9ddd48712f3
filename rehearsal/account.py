"""An account to deploy to: a local AWS, bootstrapped for the CDK, and the CDK CLI that reaches it alone."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from rehearsal.cdk import CdkCli
from rehearsal.deployed import client
from rehearsal.local_aws.address import ACCOUNT, REGION, LocalAwsAddress
from rehearsal.local_aws.process import LocalAws
from rehearsal.narrator import Narrator
from rehearsal.problems import RehearsalError
from training_cluster.paths import ROOT


@dataclass(frozen=True)
class Reader:
    """The clients of a running local AWS, and what they say about stacks."""

    address: LocalAwsAddress

    def client(self, service: str) -> Any:
        """Return a boto3 client of one service."""
        return client(self.address, service)

    def stack(self, name: str) -> dict[str, Any] | None:
        """Describe a stack; None if there is none."""
        try:
            return dict(self.client("cloudformation").describe_stacks(StackName=name)["Stacks"][0])
        except ClientError:
            return None

    def status(self, stack: str) -> str:
        """Read the status of a stack; NONE if there is no stack."""
        return str((self.stack(stack) or {"StackStatus": "NONE"})["StackStatus"])

    def outputs(self, stack: str) -> dict[str, str]:
        """Read the outputs of a stack; empty without one."""
        found = self.stack(stack) or {}
        return {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", [])}

    def events(self, stack: str) -> list[dict[str, Any]]:
        """Read the events of a stack, the newest first; an empty list without one."""
        pages = self.client("cloudformation").get_paginator("describe_stack_events")
        try:
            return [event for page in pages.paginate(StackName=stack) for event in page["StackEvents"]]
        except ClientError:
            return []

    def reasons(self, stack: str, status: str = "_FAILED") -> list[str]:
        """Read why resources of a stack have a status that ends so, the newest first."""
        return [
            str(each.get("ResourceStatusReason"))
            for each in self.events(stack)
            if each["ResourceStatus"].endswith(status) and each["LogicalResourceId"] != stack
        ]


@dataclass(frozen=True, kw_only=True)
class LocalAccount(Reader):
    """A running local AWS, with the environment and the CDK CLI that reach it."""

    environment: dict[str, str]
    """Environment variables of its clients."""
    cdk: CdkCli

    def succeeds(self, *words: str) -> bool:
        """Run a command of `cdk`; return True if it succeeded."""
        try:
            self.cdk.run(*words)
        except RehearsalError:
            return False
        return True

    def trainctl(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `trainctl` with this account."""
        return subprocess.run(
            [sys.executable, "-m", "ops", *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )


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
    server = LocalAws(folder=folder, marker=marker, region=region)
    with server as address:
        environment = address.client_environment() | dict([marker])
        cdk = CdkCli(
            project=ROOT,
            environment=environment,
            logs=logs or folder,
            narrator=narrator,
            server_log=server.log,
        )
        cdk.run("bootstrap", f"aws://{ACCOUNT}/{region}", output=folder / "cdk.out")
        yield LocalAccount(address=address, environment=environment, cdk=cdk)
