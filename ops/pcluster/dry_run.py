"""Asks the real ParallelCluster library: about a cluster config here, about changes in update_policies.py.

Nothing is created or changed. The library is installed in .venv-pcluster (docs/mechanisms/flag-to-node.md),
so a script beside this file answers in a process of that environment.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from botocore.exceptions import NoCredentialsError, NoRegionError

from ops.account.session import account_session
from ops.usage import OpsError
from training_cluster.paths import PCLUSTER_PYTHON

_TIMEOUT_S = 300
"""Time limit of the validators, which take about a minute on AWS; the provider's own limit is longer."""
_NAMES_OF_AN_ACCOUNT = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN")


@dataclass(frozen=True, kw_only=True)
class Message:
    """Message of one validator."""

    level: str
    """Level of the message: ERROR, WARNING or INFO."""
    validator: str
    """Name of the validator, such as EfaPlacementGroupValidator."""
    text: str


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """Answer of the library about a config."""

    exists: bool
    """True if the cluster exists; then an update was tried, else a creation."""
    messages: tuple[Message, ...] = ()
    """Messages of validators; empty if changes were refused, as the library then drops its warnings."""
    refused_changes: Mapping[str, str] = field(default_factory=dict)
    """Path of each key whose change the cluster cannot take now, and the reason with the library's advice."""
    refusal: str = ""
    """Reason why the library did not answer, such as a running update; "" if it did."""

    @property
    def errors(self) -> tuple[Message, ...]:
        """Messages for which the library refuses the config."""
        return tuple(each for each in self.messages if each.level == "ERROR")


def dry_run(cluster_name: str, config: Mapping[str, Any], *, environment: Mapping[str, str]) -> DryRun:
    """Ask the library about a new cluster, or about an update of the existing one. Takes up to a minute.

    Args:
        config: output of render_cluster_config, with ids that exist. The provider's own tags are added from
            the existing cluster. For on_busy=drain, set SlurmSettings.QueueUpdateStrategy to DRAIN, like the
            provider (assets/cluster_provider/request.py).
        environment: complete environment of the process; see account_environment.

    Raises OpsError as run_library does.
    """
    asked = {"cluster_name": cluster_name, "config": config}
    answer = run_library("judge_config.py", asked, environment=environment)
    messages = tuple(Message(**each) for each in answer.pop("messages"))
    return DryRun(messages=messages, **answer)


def errors_without_aws(config: Mapping[str, Any]) -> tuple[Message, ...]:
    """Return the errors of the validators that need nothing of AWS. Raises OpsError as run_library does."""
    messages = (Message(**each) for each in run_library("judge_alone.py", config))
    return tuple(each for each in messages if each.level == "ERROR")


def run_library(script: str, asked: Any, *, environment: Mapping[str, str] | None = None) -> Any:
    """Return what a script answers in the library's environment.

    Args:
        script: name of the script beside this file; it reads and writes JSON.
        environment: complete environment of the process; None for this process's.

    Raises:
        OpsError: .venv-pcluster does not exist, or the library ended without an answer.
    """
    if not PCLUSTER_PYTHON.exists():
        raise OpsError(
            f"The ParallelCluster library is not installed here: no {PCLUSTER_PYTHON}.\n  type:   make setup"
        )
    try:
        done = subprocess.run(
            [PCLUSTER_PYTHON, "-P", Path(__file__).with_name(script)],
            input=json.dumps(asked),
            env=environment,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise OpsError(
            f"The ParallelCluster library gave no answer within {_TIMEOUT_S} s.\n"
            "  type:   the same command again; AWS answers slowly, or not at all"
        ) from None
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise OpsError(f"The ParallelCluster library ended without an answer: {last}")
    return json.loads(lines[-1])


def account_environment() -> dict[str, str]:
    """Return this process's environment with the credentials and the region of account_clients().

    The library's own boto3 may be older than ours and lack a profile's kind of sign-in, so it gets the keys
    themselves. Raises botocore's errors.
    """
    session = account_session()
    credentials, region = session.get_credentials(), session.region_name
    if credentials is None:
        raise NoCredentialsError
    if region is None:
        raise NoRegionError
    keys = credentials.get_frozen_credentials()
    kept = {name: value for name, value in os.environ.items() if name not in _NAMES_OF_AN_ACCOUNT}
    token = {"AWS_SESSION_TOKEN": keys.token} if keys.token else {}
    return {
        **kept,
        **token,
        "AWS_ACCESS_KEY_ID": str(keys.access_key),
        "AWS_SECRET_ACCESS_KEY": str(keys.secret_key),
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        # The library's CDK v1 prints a banner for every version of Node newer than its own tests.
        "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "1",
    }
