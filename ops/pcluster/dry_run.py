"""What the real ParallelCluster library says of a cluster config: its validators, and what an update changes.

Nothing is made or changed. The library lives in .venv-pcluster (docs/adr/0002-two-environments.md), so a
process of that one is asked: judge_config.py, beside this file.
"""

from __future__ import annotations

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
from training_cluster.paths import ROOT

_SCRIPT = Path(__file__).with_name("judge_config.py")
_PYTHON = ROOT / ".venv-pcluster" / "bin" / "python"
_TIMEOUT_S = 300
"""The validators take about a minute on AWS (the provider's own patience with them is longer)."""
_NAMES_OF_AN_ACCOUNT = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN")


@dataclass(frozen=True, kw_only=True)
class Message:
    """What one validator says."""

    level: str
    """ERROR, WARNING or INFO."""
    validator: str
    """Its name, such as EfaPlacementGroupValidator."""
    text: str


@dataclass(frozen=True, kw_only=True)
class Change:
    """One key of the cluster config that an update would change."""

    parameter: str
    """Path of the key: Scheduling.SlurmQueues[gpu].ComputeResources[p4d].MaxCount."""
    old: str
    """Its value now, as text; "-" for none."""
    new: str
    policy: str
    """Name of its update policy: SUPPORTED, QUEUE_UPDATE_STRATEGY, COMPUTE_FLEET_STOP, UNSUPPORTED ..."""
    refusal: str
    """Why the cluster cannot take it as it stands, and what the library asks for; "" where it can."""


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """What the library would do with a config."""

    exists: bool
    """Whether the cluster is there: then an update was tried, else a creation."""
    messages: tuple[Message, ...] = ()
    """Empty, too, where only changes were refused: the library then drops its warnings."""
    changes: tuple[Change, ...] = ()
    """Of an update; empty where nothing changes, and where a validator has an error."""
    refusal: str = ""
    """Why the library judged nothing, such as an update that is running; "" where it did."""

    @property
    def errors(self) -> tuple[Message, ...]:
        """What makes the library refuse the config."""
        return tuple(each for each in self.messages if each.level == "ERROR")

    @property
    def refused_changes(self) -> tuple[Change, ...]:
        """The changes that the cluster cannot take as it stands."""
        return tuple(each for each in self.changes if each.refusal)


def dry_run(cluster_name: str, config: Mapping[str, Any], *, environment: Mapping[str, str]) -> DryRun:
    """Ask the library about a new cluster, or about an update of the one that is there. Takes up to a minute.

    Args:
        config: as render_cluster_config renders it, with ids that exist. The provider's own tags are added
            from the cluster that is there. For on_busy=drain, set SlurmSettings.QueueUpdateStrategy to DRAIN
            as the provider does (assets/cluster_provider/request.py).
        environment: all of the process's; see account_environment.

    Raises:
        OpsError: there is no .venv-pcluster, or the library ended without an answer.
    """
    if not _PYTHON.exists():
        raise OpsError(
            f"The ParallelCluster library is not installed here: no {_PYTHON}.\n  type:   make setup"
        )
    try:
        done = subprocess.run(
            [_PYTHON, "-P", _SCRIPT],
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
            "  type:   the same again; AWS answers slowly, or does not"
        ) from None
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise OpsError(f"The ParallelCluster library ended without an answer: {last}")
    return _read(json.loads(lines[-1]))


def _read(answer: Mapping[str, Any]) -> DryRun:
    return DryRun(
        exists=answer["exists"],
        messages=tuple(Message(**each) for each in answer["messages"]),
        changes=tuple(Change(**each) for each in answer["changes"]),
        refusal=answer["refusal"],
    )


def account_environment() -> dict[str, str]:
    """This process's environment, with the account and region that account_clients() asks, spelled out.

    The library's own boto3 may be older than ours and not know a profile's way to sign in, so it gets the
    keys themselves. Raises botocore's errors.
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
        # The library's CDK v1 prints a banner for every Node newer than its own tests.
        "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "1",
    }
