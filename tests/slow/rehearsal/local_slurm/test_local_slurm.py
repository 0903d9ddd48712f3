"""A real Slurm on this machine: nodes on demand, and nothing left behind."""

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from rehearsal.local_slurm import LocalSlurm
from tests.slow.assets.training.training import NODES, local_slurm, marked
from training_cluster.paths import ASSETS, ROOT

pytestmark = pytest.mark.slow


def wait_for_states(slurm: LocalSlurm, wanted: str, *, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while (states := slurm.node_states()) != dict.fromkeys(NODES, wanted):
        assert time.monotonic() < deadline, states
        time.sleep(0.5)


def test_nodes_start_power_down_and_leave_nothing(tmp_path: Path) -> None:
    service = ["tail", "--follow", "/dev/null", "--"]
    with local_slurm(tmp_path, mark="power", suspend_time_s=3, service=service) as slurm:
        assert slurm.node_states() == dict.fromkeys(NODES, "idle~")
        lines: list[str] = []
        script = "srun --mpi=none bash -c 'echo $SLURMD_NODENAME'"
        job = slurm.wait(slurm.submit(["--nodes=2", "--wrap", script]), timeout_s=180, on_line=lines.append)
        assert job.is_completed
        assert sorted(lines) == list(NODES)
        assert {p.name() for p in marked("power")} >= {"munged", "slurmctld", "slurmd"}
        assert sum(p.cmdline()[:4] == service for p in marked("power")) == 2
        wait_for_states(slurm, "idle~", timeout_s=180)
        assert "slurmd" not in {p.name() for p in marked("power")}
        assert not any(p.cmdline()[:4] == service for p in marked("power"))
    assert marked("power") == []


def test_stop_ends_jobs_that_ignore_sigterm(tmp_path: Path) -> None:
    slurm = local_slurm(tmp_path, mark="stubborn")
    slurm.start()
    script = "trap '' TERM; echo up; env -i setsid sleep 600 & sleep 600"
    job_id = slurm.submit(["--nodes=2", "--wrap", f'srun --mpi=none bash -c "{script}"'])
    output = slurm.job(job_id).output
    deadline = time.monotonic() + 180
    while not output.is_file() or output.read_text().count("up") < 2:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    sleeping = [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "600"]]
    assert len(sleeping) >= 4
    slurm.stop()
    assert marked("stubborn") == []
    assert not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in sleeping)
    slurm.stop()


def test_second_cluster_continues_above_former_job_ids(tmp_path: Path) -> None:
    shared = tmp_path / "fsx"
    (shared / "runs" / "gpt2" / "job-7").mkdir(parents=True)
    with local_slurm(tmp_path / "slurm", mark="ids") as slurm:
        step = {
            **slurm.client_env(),
            "BUNDLE": str(ASSETS),
            "SLURM_CONF": str(slurm.layout.conf),
            "TRAINING_SHARED": str(shared),
            "TRAINING_STATE": str(tmp_path / "state"),
        }
        (path,) = (ASSETS / "bootstrap" / "steps").glob("77-*.sh")
        subprocess.run(["bash", str(path)], env=step, check=True)
        assert [slurm.submit(["--wrap", "true"]) for _ in range(2)] == [100_001, 100_002]


# Runs in a network namespace: one job on two nodes.
_ONE_JOB = """
import sys
from pathlib import Path
from tests.slow.assets.training.training import local_slurm

with local_slurm(Path(sys.argv[1]), mark=sys.argv[2]) as slurm:
    job = slurm.wait(slurm.submit(["--nodes=2", "--wrap", "srun --mpi=none true"]), timeout_s=180)
    print(job.state)
"""


@pytest.mark.root
@pytest.mark.parametrize("ipv6", [1, 0])
def test_a_machine_without_a_network_is_enough(tmp_path: Path, ipv6: int) -> None:
    # glibc's AI_ADDRCONFIG does not count loopback addresses: Slurm found no address of its own to listen on.
    script = f'ip link set lo up && sysctl -q net.ipv6.conf.all.disable_ipv6={1 - ipv6} && exec "$@"'
    one_job = [sys.executable, "-c", _ONE_JOB, str(tmp_path), f"lo{ipv6}"]
    done = subprocess.run(
        ["unshare", "--net", "bash", "-c", script, "-", *one_job], cwd=ROOT, capture_output=True, text=True
    )
    assert done.stdout == "COMPLETED\n", done.stderr
