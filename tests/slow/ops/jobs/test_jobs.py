"""`trainctl submit`, `jobs`, `logs` and `cancel` with a real Slurm on this machine."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ops.jobs.request import JobRequest, sbatch_command
from rehearsal.local_slurm import LocalSlurm, NodeShape, parse_partitions
from tests.unit.ops.jobs_head_node import Call, PlayedCluster

pytestmark = pytest.mark.slow

RESOURCE = {"Name": "cpu", "InstanceType": "m6i.xlarge", "MinCount": 2, "MaxCount": 2}
JOB = """\
#!/bin/bash
#SBATCH --requeue
#SBATCH --open-mode=append
echo "$RUN_NAME on $SLURM_JOB_NUM_NODES nodes: ${*:2}"
sleep "${SECONDS_TO_RUN:-1}"
exit "${CODE:-0}"
"""


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder of Slurm's in which another user's clients can read slurm.conf."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def slurm(cluster: PlayedCluster, root: Path) -> Iterator[LocalSlurm]:
    partitions = parse_partitions(
        cluster_config={"Scheduling": {"SlurmQueues": [{"Name": "train", "ComputeResources": [RESOURCE]}]}},
        shapes={"m6i.xlarge": NodeShape(vcpus=4, memory_mib=16_384)},
    )
    marker = ("TRAINING_CLUSTER_TEST", f"trainctl-{os.getpid()}")
    second_user = "nobody" if os.geteuid() == 0 else None
    with LocalSlurm(root=root, partitions=partitions, marker=marker, second_user=second_user) as slurm:
        cluster.environment = slurm.client_env() | {"TRAINING_SHARED": str(cluster.shared)}
        (cluster.shared / "training" / "job.slurm").write_text(JOB)
        cluster.has_workload("mine")
        yield slurm


def test_jobs_are_submitted_followed_listed_and_cancelled(slurm: LocalSlurm, call: Call) -> None:
    first = slurm.layout.controller_port
    code, said, note = call(
        *("submit", "mine", "--nodes", "2", "--name", "my-run", "--follow", "--", "--note", "a  'b'")
    )
    assert (code, note.splitlines()[-1]) == (0, f"Job {first} ended: COMPLETED")
    assert said.splitlines()[1] == "my-run on 2 nodes: --note a  'b'"

    code, _, note = call("submit", "mine", "--nodes", "1", "--set", "CODE=3", "--follow")
    assert (code, note.splitlines()[-1]) == (1, f"Job {first + 1} ended: FAILED (exit code 3)")

    call("submit", "mine", "--nodes", "2", "--set", "SECONDS_TO_RUN=600")
    call("submit", "mine", "--nodes", "1", "--after", str(first + 2))
    waits = call("jobs")[1].splitlines()[-1]
    assert waits.startswith(str(first + 3))
    assert f"another job has to end first (afterok:{first + 2}" in waits

    code, said, refused = call("cancel", str(first + 2), str(first + 3), str(first))
    assert (code, refused) == (1, f"Job {first} has ended already: COMPLETED.\n")
    assert said.count("is cancelled") == 2
    said = call("jobs", "--all")[1]
    assert "completed" in said
    assert f"its script failed: trainctl logs {first + 1}" in said
    assert call("logs", str(first))[1] == "my-run on 2 nodes: --note a  'b'\n"
    assert call("submit", "mine", "--nodes", "3")[0] == 1


def test_a_second_try_is_the_same_job(slurm: LocalSlurm, cluster: PlayedCluster) -> None:
    sbatch = sbatch_command(JobRequest(workload="mine", nodes=1), "trainctl-1")
    tries = [cluster.head_node.run_script("submit-once.sh", "trainctl-1", *sbatch) for _ in range(2)]
    assert tries[0] == tries[1]
    other = cluster.head_node.run_script(
        "submit-once.sh", "trainctl-2", *sbatch_command(JobRequest(workload="mine", nodes=1), "trainctl-2")
    )
    assert int(other) == int(tries[0]) + 1


@pytest.mark.root
def test_odd_jobs_of_another_user_hide_none(slurm: LocalSlurm, call: Call) -> None:
    as_another = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")

    def submit(*argv: str) -> str:
        held = ("sbatch", "--parsable", "--hold", "--chdir=/tmp", "--nodes=1")
        done = subprocess.run(
            [*as_another, *held, *argv], env=slurm.user_env(), cwd="/", capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    forged = "x\n17|gpu|root|RUNNING|None|64|1:00|1:00|y JobState=RUNNING StdOut=/etc/passwd"
    odd = (forged, "\x1b]0;pwned\x07\x1b[31mroot", "a|b|c")
    theirs = [submit("--job-name", name, "--wrap", "true") for name in odd]
    both = submit(":", "--nodes=1", "--wrap", "true")
    ours = slurm.submit(["--hold", "--nodes=1", "--wrap", "true"])
    code, said, _ = call("jobs")
    assert code == 0
    ids = {line.split()[0] for line in said.splitlines()[1:]}
    assert ids == {*theirs, f"{both}+0", f"{both}+1", str(ours)}
    assert forged.replace("\n", "?") in said
    assert not {"\x1b", "\x07"} & set(said)
    assert call("cancel", *theirs, both, str(ours))[0] == 0
