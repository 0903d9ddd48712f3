"""The end of a Capacity Block in a real Slurm, with EC2's answer given."""

import datetime
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rehearsal.local_slurm import LocalSlurm
from tests.slow.assets.training.training import NODES, local_slurm, wait_until
from training_cluster.paths import ASSETS

pytestmark = pytest.mark.slow


def tell(folder: Path, slurm: LocalSlurm, end: datetime.datetime) -> None:
    """Run the head node's program, with a block that ends then."""
    block = {"CapacityReservationId": "cr-1", "EndDate": end.isoformat(timespec="seconds")}
    (folder / "aws").write_text(f"#!/bin/sh\necho '{json.dumps([block])}'\n")
    (folder / "aws").chmod(0o755)
    env = slurm.client_env() | {"PATH": f"{folder}:{os.environ['PATH']}", "TRAINING_ROOT": str(folder)}
    program = ASSETS / "bootstrap" / "services" / "block_ends.py"
    subprocess.run([sys.executable, program, "us-east-1"], env=env, check=True)


def reservations_after_clustermgtd(folder: Path, slurm: LocalSlurm) -> list[str]:
    """Return what is left after a cycle of clustermgtd, which knows no Capacity Block."""
    (folder / "sudo").write_text('#!/bin/sh\nexec "$@"\n')
    (folder / "sudo").chmod(0o755)
    of_slurm = {"PATH": f"{folder}:{os.environ['PATH']}", "SLURM_BINARIES_DIR": "/usr/bin"}
    cycle = (
        "from slurm_plugin.capacity_block_manager import CapacityBlockManager as Manager\n"
        "Manager('us-east-1', {}, None).get_reserved_nodenames([])"
    )
    subprocess.run([sys.executable, "-c", cycle], env=slurm.client_env() | of_slurm, check=True)
    command = ["sinfo", "--noheader", "--reservation"]
    said = subprocess.check_output(command, env=slurm.client_env(), text=True)
    return [line.split()[0] for line in said.splitlines()]


def test_jobs_end_before_their_capacity_block(tmp_path: Path) -> None:
    config = tmp_path / "etc" / "parallelcluster" / "slurm_plugin" / "fleet-config.json"
    config.parent.mkdir(parents=True)
    resource = {"CapacityType": "capacity-block", "CapacityReservationId": "cr-1"}
    config.write_text(json.dumps({"train": {"p4d": resource}, "other": {"cpu": {"CapacityType": "spot"}}}))
    now, minute = datetime.datetime.now(datetime.UTC), datetime.timedelta(minutes=1)
    with local_slurm(tmp_path / "slurm", mark="blocks") as slurm:

        def reason(node: str) -> str:
            argv = ["sinfo", "--noheader", f"--nodes={node}", "--format=%E"]
            return subprocess.check_output(argv, env=slurm.client_env(), text=True).strip()

        def submit(node: str, *options: str) -> int:
            return slurm.submit([f"--nodelist={node}", *options, "--wrap", "sleep 600"], env={})

        runs = submit(NODES[0])
        wait_until(lambda: slurm.job(runs).state == "RUNNING", timeout_s=60, what="no node")
        tell(tmp_path, slurm, now + 55 * minute)
        endless, fits = submit(NODES[1]), submit(NODES[1], "--time=5")
        wait_until(lambda: slurm.job(fits).state == "RUNNING", timeout_s=60, what="a short job waits")
        assert (slurm.job(endless).state, "Reserved" in slurm.job(endless).reason) == ("PENDING", True)
        assert [reason(node) for node in NODES] == ["none"] * 2
        scontrol = ["scontrol", "create", "reservationname=pcluster-cr-2", "users=root", f"nodes={NODES[0]}"]
        options = ["starttime=now+10", "duration=60", "flags=maint,ignore_jobs"]
        subprocess.run([*scontrol, *options], env=slurm.client_env(), check=True)
        assert reservations_after_clustermgtd(tmp_path, slurm) == ["training-cluster-cr-1"]
        slurm.cancel(fits)
        tell(tmp_path, slurm, now + 1495 * minute)  # extended by a day
        wait_until(lambda: slurm.job(endless).state == "RUNNING", timeout_s=60, what="still reserved")
        slurm.cancel(endless)
        wait_until(lambda: slurm.job(endless).has_ended, timeout_s=60, what="not cancelled")
        tell(tmp_path, slurm, now + 44 * minute)
        assert reason(NODES[0]).startswith("training-cluster: EC2 takes it: its Capacity Block cr-1 ends at")
        assert (reason(NODES[1]), slurm.job(runs).state) == ("none", "RUNNING")
