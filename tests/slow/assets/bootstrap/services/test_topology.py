"""The tree of the network in a real Slurm, with EC2's answers given; nodes have addresses of their own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from rehearsal import processes
from rehearsal.local_slurm import LocalSlurm
from rehearsal.local_slurm.daemons import start_slurmctld
from tests.slow.assets.training.training import local_slurm, wait_until
from training_cluster.paths import ASSETS

pytestmark = pytest.mark.slow

_SHOW = ("scontrol", "show", "topology")
A, B = ["nn-1", "nn-2", "nn-3"], ["nn-1", "nn-2", "nn-4"]


def tell(folder: Path, slurm: LocalSlurm, places: Mapping[int, Sequence[str]], *cluster: str) -> str:
    """Run the head node's program ten minutes after its last run, with EC2's answer about nodes' numbers."""
    state = folder / "var/lib/training-cluster/topology.json"
    if state.exists():
        state.write_text(json.dumps(json.loads(state.read_text()) | {"at": 0}))
    instances = [[f"i-{number}", f"127.0.1.{number}"] for number in places]
    topology = [[f"i-{number}", place] for number, place in places.items()]
    answers = {
        "describe-instance-topology": json.dumps(topology),
        "describe-instances": json.dumps(instances),
    }
    cases = "".join(f"{name}) echo '{answer}' ;;\n" for name, answer in answers.items())
    (folder / "aws").write_text(f"#!/bin/bash\ncase $2 in\n{cases}esac\n")
    (folder / "aws").chmod(0o755)
    env = slurm.client_env()
    env |= {"PATH": f"{folder}:{env['PATH']}:{os.environ['PATH']}", "TRAINING_ROOT": str(folder)}
    program = ASSETS / "bootstrap" / "services" / "topology.py"
    return subprocess.check_output([sys.executable, program, *cluster], env=env, text=True)


def ask(slurm: LocalSlurm, *argv: str) -> str:
    """Return what a client of Slurm prints."""
    return subprocess.check_output(argv, env=slurm.client_env(), text=True)


def test_slurm_gives_nodes_of_one_switch(tmp_path: Path) -> None:
    with local_slurm(tmp_path / "slurm", mark="topology", nodes=4, suspend_time_s=600) as slurm:

        def nodes_of(*options: str) -> str:
            job = slurm.submit([*options, "--exclusive", "--wrap", "sleep 600"], env={})
            wait_until(lambda: slurm.job(job).state == "RUNNING", timeout_s=60, what="the job waits")
            found = ask(slurm, "squeue", "--noheader", f"--jobs={job}", "--format=%N").strip()
            slurm.cancel(job)
            wait_until(lambda: slurm.job(job).has_ended, timeout_s=60, what="not cancelled")
            return found

        names = slurm.node_names
        assert nodes_of("--nodes=4") == "train-dy-p4d-[1-4]"
        for number, name in enumerate(names, start=1):
            ask(slurm, "scontrol", "update", f"nodename={name}", f"nodeaddr=127.0.1.{number}")
        assert nodes_of("--nodes=2") == "train-dy-p4d-[1-2]"
        assert "2 leaves" in tell(tmp_path, slurm, {1: A, 2: B, 3: A, 4: B}, "training", "us-east-1")
        # ParallelCluster deletes the file and restarts slurmctld, which only in 25.11 takes a plugin before.
        conf = slurm.layout.conf
        conf.with_name("topology.conf").unlink()
        processes.end_program({"SLURM_CONF": str(conf)}, "slurmctld", grace_s=30)
        tell(tmp_path, slurm, {})
        start_slurmctld(layout=slurm.layout, environment=slurm.client_env(), clean=False)
        assert nodes_of("--nodes=2") in {"train-dy-p4d-[1,3]", "train-dy-p4d-[2,4]"}
        assert nodes_of("--nodes=4") == "train-dy-p4d-[1-4]"
        assert "nn-4 Level=0 LinkSpeed=1 Nodes=train-dy-p4d-2,train-dy-p4d-4\n" in ask(slurm, *_SHOW)
        ask(slurm, "scontrol", "update", f"nodename={names[1]}", "nodeaddr=127.0.1.9")
        tell(tmp_path, slurm, {9: A, 1: A, 3: A, 4: B}, "training", "us-east-1")
        assert nodes_of("--nodes=3") == "train-dy-p4d-[1-3]"
