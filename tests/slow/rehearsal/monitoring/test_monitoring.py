"""Every query of every board, asked of a real Prometheus that scrapes the nodes of a real Slurm."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rehearsal.local_slurm import LocalSlurm
from rehearsal.local_slurm.partitions import parse_partitions
from rehearsal.local_slurm.ports import find_ports
from rehearsal.monitoring.boards import ask_until_complete, without_data
from rehearsal.monitoring.prometheus import Monitoring, query
from rehearsal.monitoring.scene import Scene
from tests.slow.assets.training.training import QUEUE, SHAPES
from training_cluster.paths import ASSETS

pytestmark = pytest.mark.slow
# Writes rows as trainkit does, a second apart.
TRAINS = """\
import pathlib, sys, time
sys.path.insert(0, {training!r})
from trainkit.run.metrics import Metrics
folder = pathlib.Path({runs!r}) / "gpt2" / "mine"
folder.mkdir(parents=True)
(folder / "owner").write_text(sys.argv[1])
metrics = Metrics(folder / "metrics.jsonl", after_step=0)
for step in range(1, 600):
    metrics.add(step=step, loss=7 - step / 100, learning_rate=1e-3, tokens=step, tokens_per_s=1000.0,
                grad_norm=1.0, step_s=1.0, data_s=0.25, memory_bytes=1 << 30, world_size=2)
    time.sleep(1)
"""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    root = tmp_path_factory.mktemp("m")
    shared, prologs = root / "fsx", root / "scripts" / "prolog.d"
    (shared / "runs").mkdir(parents=True)
    job_files = root / "node" / "metrics"
    job_files.mkdir(parents=True)
    for moment in ("prolog", "epilog"):
        text = (ASSETS / "bootstrap/metrics/job-file.sh").read_text()
        set_up = f"\nreadonly MOMENT={moment}\nexport TRAINING_METRICS={job_files}\n"
        program = prologs.with_name(f"{moment}.d") / "20-training-cluster-metrics"
        program.parent.mkdir(parents=True)
        program.write_text(text.replace("\n", set_up, 1))
        program.chmod(0o755)
    (root / "prices").write_text("head - 0.68\ntrain p4d 21.96\n")
    (root / "train.py").write_text(
        TRAINS.format(training=str(ASSETS / "training"), runs=str(shared / "runs"))
    )
    slurm = LocalSlurm(
        root=root / "s",
        partitions=parse_partitions(cluster_config={"Scheduling": {"SlurmQueues": [QUEUE]}}, shapes=SHAPES),
        marker=("LOCAL_SLURM_TEST", f"monitoring-{os.getpid()}"),
        suspend_time_s=600,
        prolog=prologs,
        private=[job_files],
    )
    found = Scene(
        folder=root / "metrics",
        bootstrap=ASSETS / "bootstrap",
        slurm=root / "s",
        job_files=job_files,
        shared=shared,
        prices=root / "prices",
        cluster="training",
        first_port=find_ports(16),
        interval_s=2,
    )
    with slurm:
        monitoring = Monitoring(found, slurm.client_env())
        try:
            _work(slurm, root)
            monitoring.start()
            yield found
        finally:
            monitoring.stop()


def _work(slurm: LocalSlurm, root: Path) -> None:
    """Start a job that trains, leave one pending, and drain a node."""
    # On both nodes first, since a node without an instance has no state to publish.
    first = slurm.submit(["--nodes=2", "--exclusive", "--wrap", "srun true"])
    slurm.wait(first, timeout_s=120, on_line=lambda _: None)
    slurm.submit(["--nodes=1", "--exclusive", "--wrap", f"srun python3 {root}/train.py $SLURM_JOB_ID"])
    env, running = slurm.client_env(), ""
    while not running:
        time.sleep(0.5)
        running = subprocess.run(
            ["squeue", "--noheader", "--format=%N"], env=env, capture_output=True, text=True, check=True
        ).stdout.strip()
    (other,) = {"train-dy-p4d-1", "train-dy-p4d-2"} - {running}
    subprocess.run(
        ["scontrol", "update", f"nodename={other}", "state=drain", "reason=a test"], env=env, check=True
    )
    slurm.submit(["--nodes=2", "--exclusive", "--wrap", "true"])


def test_every_query_of_every_board_has_data(scene: Scene) -> None:
    """Or it needs hardware, which is not here. No rule fires in a healthy minute."""
    asked = ask_until_complete(scene.url, timeout_s=300)
    assert [(each.board, each.panel, each.query) for each in without_data(asked)] == []
    assert sum(each.series > 0 for each in asked) >= 40
    assert not [each for each in asked if each.series and each.needs], "no GPU, EFA or Lustre is here"
    assert query(scene.url, 'ALERTS{alertstate="firing"}') == []


def test_the_job_its_user_and_node_are_named(scene: Scene) -> None:
    ask_until_complete(scene.url, timeout_s=300)
    # Only root gives each node a folder of its own: for a user, both node_exporters read the same file.
    (on_node,) = query(scene.url, "max by (node, job, user) (slurm_node_job_info)")
    (in_slurm,) = query(scene.url, "slurm_job_info")
    (step,) = query(scene.url, "training_step")
    assert on_node["metric"]["job"] == in_slurm["metric"]["job"] == step["metric"]["job"]
    assert on_node["metric"]["user"] == in_slurm["metric"]["user"] == step["metric"]["user"]
    assert on_node["metric"]["node"].startswith("train-dy-p4d-")
    (out,) = query(scene.url, "slurm_node_out_since_seconds")
    assert out["metric"]["reason"] == "a test"
    assert out["metric"]["node"] != on_node["metric"]["node"]
