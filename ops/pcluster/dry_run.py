"""Asks the real ParallelCluster library about a cluster config: its validators, and the changes of an update.

Nothing is created or changed. The library is installed in .venv-pcluster (docs/mechanisms/flag-to-node.md),
so a process of that environment answers: judge_config.py, beside this file.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import NoCredentialsError, NoRegionError

from ops.account.session import account_session
from ops.usage import OpsError
from training_cluster.paths import PCLUSTER_PYTHON

_SCRIPT = Path(__file__).with_name("judge_config.py")
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
class Change:
    """One key of the cluster config that an update would change."""

    parameter: str
    """Path of the key: Scheduling.SlurmQueues[gpu].ComputeResources[p4d].MaxCount."""
    old: str
    """Present value as text; "-" for none."""
    new: str
    policy: str
    """Update policy of the key: SUPPORTED, QUEUE_UPDATE_STRATEGY, COMPUTE_FLEET_STOP, UNSUPPORTED ..."""
    refusal: str
    """Reason why the cluster cannot take the change now, and the library's advice; "" if it can."""


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """Answer of the library about a config."""

    exists: bool
    """True if the cluster exists; then an update was tried, else a creation."""
    messages: tuple[Message, ...] = ()
    """Messages of validators; empty if changes were refused, as the library then drops its warnings."""
    changes: tuple[Change, ...] = ()
    """Changes of an update; empty if nothing changes, or a validator reports an error."""
    refusal: str = ""
    """Reason why the library did not answer, such as a running update; "" if it did."""

    @property
    def errors(self) -> tuple[Message, ...]:
        """Messages for which the library refuses the config."""
        return tuple(each for each in self.messages if each.level == "ERROR")

    @property
    def refused_changes(self) -> tuple[Change, ...]:
        """Changes that the cluster cannot take now."""
        return tuple(each for each in self.changes if each.refusal)


def dry_run(cluster_name: str, config: Mapping[str, Any], *, environment: Mapping[str, str]) -> DryRun:
    """Ask the library about a new cluster, or about an update of the existing one. Takes up to a minute.

    Args:
        config: output of render_cluster_config, with ids that exist. The provider's own tags are added from
            the existing cluster. For on_busy=drain, set SlurmSettings.QueueUpdateStrategy to DRAIN, like the
            provider (assets/cluster_provider/request.py).
        environment: complete environment of the process; see account_environment.

    Raises:
        OpsError: .venv-pcluster does not exist, or the library ended without an answer.
    """
    if not PCLUSTER_PYTHON.exists():
        raise OpsError(
            f"The ParallelCluster library is not installed here: no {PCLUSTER_PYTHON}.\n  type:   make setup"
        )
    try:
        done = subprocess.run(
            [PCLUSTER_PYTHON, "-P", _SCRIPT],
            input=json.dumps({"cluster_name": cluster_name, "config": config}),
            env=dict(environment),
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
    answer = json.loads(lines[-1])
    return DryRun(
        exists=answer["exists"],
        messages=tuple(Message(**each) for each in answer["messages"]),
        changes=tuple(Change(**each) for each in answer["changes"]),
        refusal=answer["refusal"],
    )


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
