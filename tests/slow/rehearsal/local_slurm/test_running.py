"""A Slurm that runs is changed as its cluster is: more and fewer nodes, another queue, a stopped fleet."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rehearsal.local_slurm import LocalSlurm, NodeSet, NodeShape, Partition, RunningSlurm, SlurmError
from tests.slow.assets.training.training import marked

pytestmark = pytest.mark.slow

MARK = f"running-{os.getpid()}"


def _partition(name: str, *, static: int = 0, dynamic: int = 0) -> Partition:
    shape = NodeShape(vcpus=2, memory_mib=1024)
    nodes = NodeSet(
        queue=name, name="m6i", instance_types=("m6i.large",), static=static, dynamic=dynamic, shape=shape
    )
    return Partition(name=name, node_sets=(nodes,))


@pytest.fixture
def started(tmp_path: Path) -> Iterator[LocalSlurm]:
    slurm = LocalSlurm(
        root=tmp_path, partitions=[_partition("cpu", dynamic=2)], marker=("LOCAL_SLURM_TEST", MARK)
    )
    with slurm:
        yield slurm
    assert marked("running") == []


def _await(read: Callable[[], object], wanted: object) -> None:
    deadline = time.monotonic() + 180
    while (now := read()) != wanted:
        assert time.monotonic() < deadline, now
        time.sleep(0.2)


def test_running_slurm_takes_updated_partitions(started: LocalSlurm) -> None:
    job_id = started.submit(["--nodes=1", "--wrap", "while [ ! -e go ]; do sleep 0.1; done; echo done"])
    _await(lambda: started.job_state(job_id), "RUNNING")
    slurm = RunningSlurm(root=started.layout.root, environment=started.client_env())

    slurm.update([_partition("cpu", dynamic=4), _partition("big", static=1, dynamic=1)])
    assert {name.rpartition("-")[0] for name in slurm.node_states()} == {
        "cpu-dy-m6i",
        "big-st-m6i",
        "big-dy-m6i",
    }
    assert slurm.job_state(job_id) == "RUNNING", "an update ends no job on nodes that remain"
    ran = slurm.wait(slurm.submit(["--nodes=3", "--wrap", "srun --mpi=none true"]), timeout_s=180)
    assert ran.is_completed, "nodes that were added run jobs beside those that were running"
    (started.layout.jobs / "go").touch()
    assert slurm.wait(job_id, timeout_s=180).is_completed

    again = RunningSlurm(root=started.layout.root, environment=started.client_env())
    again.update([_partition("cpu", dynamic=1)])
    assert list(again.node_states()) == ["cpu-dy-m6i-1"]

    with pytest.raises(RuntimeError), again.updated([_partition("more", static=1, dynamic=1)]):
        assert {name.rpartition("-")[0] for name in again.node_states()} == {"more-st-m6i", "more-dy-m6i"}
        raise RuntimeError("OnNodeUpdated failed")
    assert list(again.node_states()) == ["cpu-dy-m6i-1"], "a failed update brings the nodes back"
    again = RunningSlurm(root=started.layout.root, environment=started.client_env())
    assert again.wait(again.submit(["--wrap", "true"]), timeout_s=180).is_completed


def test_stopped_fleet_runs_no_job(started: LocalSlurm) -> None:
    slurm = RunningSlurm(root=started.layout.root, environment=started.client_env())
    job = slurm.submit(["--nodes=1", "--wrap", 'test -n "$SLURM_RESTART_COUNT" || sleep 600'])
    _await(lambda: slurm.job_state(job), "RUNNING")
    slurm.stop_fleet()
    _await(slurm.node_states, dict.fromkeys(["cpu-dy-m6i-1", "cpu-dy-m6i-2"], "idle~"))
    assert slurm.job_state(job) == "PENDING", "it is queued again, as after the end of its instance"
    with pytest.raises(SlurmError, match="inactive"):
        slurm.submit(["--nodes=1", "--wrap", "true"])
    slurm.start_fleet([_partition("cpu", dynamic=2)])
    assert slurm.wait(job, timeout_s=120).is_completed
