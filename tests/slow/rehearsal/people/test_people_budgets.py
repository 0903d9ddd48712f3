"""Budgets of GPU hours, applied by step 78 to a real Slurm with slurmdbd and MariaDB."""

import dataclasses
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rehearsal.local_slurm import LocalSlurm, NodeSet, NodeShape, Partition
from rehearsal.local_slurm.errors import SlurmError
from training_cluster.cluster.config import JOB_SETTINGS, SHARED_CLUSTER_SETTINGS
from training_cluster.cluster.queues import WEIGHTS
from training_cluster.paths import ASSETS

pytestmark = [pytest.mark.slow, pytest.mark.root]
NOBODY = "65534"
FILES = {
    "people": f"nobody {NOBODY} active user - - nlp,vision 1 - -\n",
    "accounts": "nlp 6001 - 1 - 1\nvision 6002 - 1 - -\n",
}
REASON = "QOSGrpBillingMinutes"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("budgets")


@pytest.fixture(scope="module")
def slurm(folder: Path) -> Iterator[LocalSlurm]:
    """A Slurm whose account nlp has one GPU hour, with two nodes of 8 GPUs."""
    nodes = NodeSet(
        queue="gpu",
        name="n",
        instance_types=("p4d.24xlarge",),
        static=2,
        dynamic=0,
        shape=NodeShape(vcpus=2, memory_mib=512),
    )
    with LocalSlurm(
        root=folder / "slurm",
        partitions=[
            Partition(name="gpu", node_sets=(nodes,), settings={WEIGHTS: "Node=8"}),
            Partition(
                name="cpu",
                node_sets=(dataclasses.replace(nodes, queue="cpu", static=1),),
                settings={WEIGHTS: "Node=0"},
            ),
        ],
        marker=("TRAINING_CLUSTER_BUDGETS", str(os.getpid())),
        accounting=True,
        second_user="nobody",
        settings=[JOB_SETTINGS, SHARED_CLUSTER_SETTINGS],
    ) as slurm:
        (users := folder / "bundle" / "users").mkdir(parents=True)
        for name, text in FILES.items():
            (users / name).write_text(text)
        for _ in range(2):  # it is safe to run again
            apply(slurm, folder)
        assert (folder / "budgets").read_text() == "nlp 1 nobody\n"
        yield slurm


def apply(slurm: LocalSlurm, folder: Path) -> None:
    variables = {"BUNDLE": str(folder / "bundle"), "TRAINING_ROOT": "", "TRAINING_ETC": str(folder)}
    step = ASSETS / "bootstrap" / "steps" / "78-apply-accounts.sh"
    subprocess.run(["bash", step], env=slurm.client_env() | variables, check=True)


def submit(slurm: LocalSlurm, *options: str, account: str = "nlp") -> int:
    words = (f"--account={account}", "--exclusive", "--output=/dev/null", "--wrap=sleep 300", *options)
    return slurm.submit(words, user=NOBODY, cwd=Path("/"))


def await_state(slurm: LocalSlurm, job: int, state: str, reason: str = "None") -> None:
    deadline = time.monotonic() + 60
    while (now := slurm.job(job)).state != state or now.reason != reason:
        assert time.monotonic() < deadline, now
        time.sleep(0.1)


def test_a_budget_is_reserved_then_spent(slurm: LocalSlurm) -> None:
    def qos(*words: str) -> str:
        command = ("sacctmgr", "--immediate", "--noheader", "--parsable2", *words)
        done = subprocess.run(command, env=slurm.client_env(), capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert qos("show", "qos", "budget-nlp", "format=Flags,GrpTRESMins") == "NoDecay|billing=60"
    # 8 GPUs for 7 minutes; 4 of the 60 minutes are left.
    first = submit(slurm, "--time=7")
    await_state(slurm, first, "RUNNING")
    waits = submit(slurm, "--time=1")
    await_state(slurm, waits, "PENDING", REASON)
    other = submit(slurm, account="vision")
    await_state(slurm, other, "RUNNING")
    for job in (first, other):
        subprocess.run(["scancel", str(job)], env=slurm.client_env(), check=True)
    await_state(slurm, waits, "RUNNING")
    endless = submit(slurm)
    await_state(slurm, endless, "PENDING", REASON)
    await_state(slurm, submit(slurm, "--partition=cpu"), "RUNNING")
    with pytest.raises(SlurmError, match="Invalid qos"):
        submit(slurm, "--qos=normal")
    # Each second now counts as an hour.
    qos("modify", "qos", "budget-nlp", "set", "UsageFactor=3600")
    deadline, now = time.monotonic() + 60, slurm.job(waits)
    while now.reason != REASON:  # slurmctld hears of the factor after a while
        assert time.monotonic() < deadline, now
        if now.state == "RUNNING":
            subprocess.run(["scancel", str(endless), str(now.job_id)], env=slurm.client_env(), check=True)
            now = slurm.job(submit(slurm, "--time=1"))
        time.sleep(0.1)
        now = slurm.job(now.job_id)


def test_waiting_jobs_follow_a_changed_budget(slurm: LocalSlurm, folder: Path) -> None:
    for hours, qos in (("1", "budget-vision"), ("-", "normal")):
        job = submit(slurm, "--hold", "--time=1", account="vision")
        (folder / "bundle" / "users" / "accounts").write_text(f"vision 6002 - 1 - {hours}\n")
        apply(slurm, folder)
        subprocess.run(["scontrol", "release", str(job)], env=slurm.client_env(), check=True)
        await_state(slurm, job, "PENDING", "InvalidQOS")
        service = ASSETS / "bootstrap" / "services" / "renew-qos.sh"
        subprocess.run(["bash", service], env=slurm.user_env(), check=True)
        await_state(slurm, job, "RUNNING")
        argv = ["squeue", "--noheader", f"--jobs={job}", "--format=%q"]
        assert subprocess.check_output(argv, env=slurm.client_env(), text=True).strip() == qos
        slurm.cancel(job)
