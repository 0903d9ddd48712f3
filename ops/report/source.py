"""Finds a run in a folder of this machine, or below /fsx/runs of a cluster."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ops.account.deploy_command import deploy_command
from ops.account.head_node import CommandError, HeadNode, find_head_node
from ops.account.session import account_clients
from ops.report.record import Run, unpack
from ops.usage import OpsError, UsageError
from training_cluster.catalog.families import load_base
from training_cluster.paths import TRAINING

_MODULE = ("python3", "-B", "-m", "trainkit.run.report")


def read_folder(folder: Path) -> Run:
    """Read a run's folder. Raises UsageError if it is not one."""
    if not any((folder / name).is_file() for name in ("metrics.jsonl", "starts")):
        raise UsageError(
            f"{folder} is not a run: it has neither metrics.jsonl nor starts.\n"
            "  allowed: FOLDER/runs/WORKLOAD/RUN, or WORKLOAD/RUN of a cluster"
        )
    done = subprocess.run(
        [sys.executable, *_MODULE[1:], str(folder.resolve()), "--record"],
        env=os.environ | {"PYTHONPATH": str(TRAINING)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise OpsError(f"{folder} cannot be read: {said}")
    return unpack(done.stdout)


def read_on_cluster(run: str, head_node: HeadNode) -> Run:
    """Find a run by job id, name or WORKLOAD/RUN, and read it.

    Raises:
        UsageError: there is no such run, or there are several.
        OpsError: the cluster does not answer.
        botocore's errors.
    """
    shared = load_base().shared_dir
    tell = ("env", f"PYTHONPATH={shared}/training", *_MODULE)
    try:
        found = json.loads(head_node.run(*tell, f"{shared}/runs", "--find", run, reads_only=True))
        label = _only(run, found["found"], found["newest"], head_node.cluster_name)
        packed = head_node.run(*tell, f"{shared}/runs/{label}", "--record", reads_only=True)
        return unpack(packed, cluster=head_node.cluster_name)
    except CommandError as error:
        if "unrecognized arguments" not in str(error):
            raise
        raise OpsError(
            f"The scripts on {head_node.cluster_name} are older than this trainctl.\n"
            f"  type:   {deploy_command(head_node.cluster_name)}"
        ) from None


def _only(run: str, found: list[str], newest: list[str], cluster_name: str) -> str:
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f'"{run}" names {len(found)} runs of {cluster_name}.\n  allowed: {", ".join(sorted(found))}'
        )
    there = f"\n  allowed: {', '.join(newest)}" if newest else " There is none yet."
    raise UsageError(f'There is no run "{run}" on {cluster_name}, and no such folder here.{there}')


def read_runs(runs: Sequence[str], cluster_name: str) -> list[Run]:
    """Read each run; the account is asked only for names that are not folders.

    Raises:
        UsageError: a run does not exist.
        OpsError: a run cannot be read, or the cluster does not answer.
        botocore's errors.
    """
    head_node: HeadNode | None = None
    found = []
    for run in runs:
        if Path(run).is_dir():
            found.append(read_folder(Path(run)))
            continue
        if run.startswith(("/", "./", "../", "~")):
            raise UsageError(
                f"{run} {'is not a folder' if Path(run).is_file() else 'does not exist'}.\n"
                "  allowed: FOLDER/runs/WORKLOAD/RUN, or WORKLOAD/RUN of a cluster"
            )
        head_node = head_node or find_head_node(cluster_name, account_clients())
        found.append(read_on_cluster(run, head_node))
    return found
