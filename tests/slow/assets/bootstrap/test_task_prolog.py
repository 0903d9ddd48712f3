"""The variables of a user's credentials, in a job of a real Slurm."""

import os
from pathlib import Path

import pytest

from rehearsal.local_slurm import LocalSlurm, NodeSet, NodeShape, Partition
from training_cluster.paths import ASSETS

pytestmark = pytest.mark.slow
JOB = """#!/bin/sh
say='echo $AWS_CONTAINER_CREDENTIALS_FULL_URI $AWS_EC2_METADATA_DISABLED $AWS_REGION $OWN'
eval "$say"
srun --mpi=none sh -c "$say"
"""


def test_each_task_finds_its_credentials(tmp_path: Path) -> None:
    """A batch script is a task. A region that a user chose stays, and so does another task prolog."""
    script, own, job = (tmp_path / name for name in ("task-prolog", "own", "job"))
    job.write_text(JOB)
    own.write_text("#!/bin/sh\necho export OWN=own\n")
    first, _, rest = (ASSETS / "bootstrap" / "task-prolog.sh").read_text().partition("\n")
    script.write_text(f"{first}\nregion=us-east-1 another='{own}'\n{rest}")
    for each in (script, own):
        each.chmod(0o755)
    shape = NodeShape(vcpus=1, memory_mib=1024)
    nodes = NodeSet(queue="cpu", name="a", instance_types=("m6i.large",), static=1, dynamic=0, shape=shape)
    slurm = LocalSlurm(
        root=tmp_path / "slurm",
        partitions=[Partition(name="cpu", node_sets=(nodes,))],
        marker=("LOCAL_SLURM_TEST", f"prolog-{os.getpid()}"),
        settings=[{"TaskProlog": str(script)}],
    )
    with slurm:
        chosen = "--export=ALL,AWS_DEFAULT_REGION=eu-west-1"
        ended = slurm.wait(slurm.submit(["--nodes=1", chosen, str(job)]), timeout_s=180)
    assert ended.output.read_text() == "http://127.0.0.1:330/ true eu-west-1 own\n" * 2
