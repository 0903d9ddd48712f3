"""A node's root service, with EC2's and Slurm's answers given."""

import email.utils
import json
import os
import subprocess
import time
from pathlib import Path
from types import ModuleType

import pytest

from ops.asset_code import asset_code
from training_cluster.paths import TRAINING

SPOT = '{"action": "terminate", "time": "T"}'
NAME = "gpu-st-p5-1"
_RESTARTS = TRAINING / "nodes.sh"


class Played:
    """What EC2 says, what Slurm lists, and what Slurm was asked to do."""

    def __init__(self, service: ModuleType) -> None:
        self.service = service
        self.spot, self.events, self.steps, self.reason = "", "[]", "", "none"
        self.jobs: dict[str, str] = {}
        self.done: list[str] = []

    def ask(self, path: str, _headers: object, _method: str = "GET") -> str:
        return {"token": "token", "action": self.spot, "scheduled": self.events}[
            path.rpartition("/")[2].rpartition("-")[2]
        ]

    def slurm(self, *command: str) -> str:
        if command[0] == "squeue":
            if "--user" in command[4]:
                return self.jobs.get(command[4], "")
            ids = (line.split()[0] for line in self.steps.splitlines() if "." in line.split()[0])
            forged = "8.1 0:01 n a\n99.0 1:00 n bash\n"  # a job's name with a line end
            return "\n".join(ids) if command[-1] == "--format=%i" else f"{self.steps}{forged}"
        if command[2] == "hostnames":
            return command[3]
        if command[1] == "show":
            return f"NodeName={NAME} State=MIXED+DRAIN Reason={self.reason} [root@T]"
        if command[1] == "update":
            self.reason = command[4].removeprefix("reason=")
        self.done.append(command[-1])
        return ""


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    service = asset_code("bootstrap/services", "node_service").node_service
    played = Played(service)
    monkeypatch.setattr(service, "_ask", played.ask)
    monkeypatch.setattr(service, "slurm", played.slurm)
    monkeypatch.setattr(service, "POLL_S", 0)
    return played


def test_each_step_of_a_taken_node_is_told(played: Played) -> None:
    node = played.service.Node(NAME)
    node.look()
    assert played.done == []
    played.spot = SPOT
    played.steps = (
        f"7_1.0 12:00 {NAME} bash\n7_1.1 12:00 {NAME} watch\n7_1.batch 12:01 n batch\n8.1 0:04 n a b\n"
    )
    node.look()
    drained = "reason=training-cluster: EC2 takes it: spot terminate at T"
    assert played.done == [drained, "7_1.0"], "the tasks of a young step may miss a signal"
    played.steps = played.steps.replace("0:04", "0:09")
    node.look()
    node.look()
    assert played.done == [drained, "7_1.0", "8.1"]
    played.steps, played.reason = "9.0 1:00 n bash\n", "checked by hand"
    node.look()
    assert played.done[-1] == "8.1", "a node in another state"


def test_one_node_tells_steps_of_a_block(played: Played) -> None:
    played.reason = "training-cluster: EC2 takes it: its Capacity Block cr-1 ends at 11:30"
    played.steps = f"7.0 12:00 {NAME} bash\n9.0 12:00 another bash\n"
    played.service.Node(NAME).look()
    assert played.done == ["7.0"]


@pytest.mark.parametrize(
    ("state", "in_s", "is_taken"), [("active", 800, True), ("active", 9000, False), ("canceled", 800, False)]
)
def test_scheduled_events_take_a_node_in_time(played: Played, state: str, in_s: int, is_taken: bool) -> None:
    begins = email.utils.formatdate(time.time() + in_s, usegmt=True).partition(", ")[2]
    played.events = json.dumps([{"NotBefore": begins, "Code": "instance-retirement", "State": state}])
    played.service.Node(NAME).look()
    said = [f"reason=training-cluster: EC2 takes it: instance-retirement at {begins}"]
    assert played.done == (said if is_taken else [])


def test_users_with_job_get_verdict(played: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As between two starts of a job."""
    judge = tmp_path / "judge"
    judge.write_text('echo "GPU 3 fell off $SLURMD_NODENAME, $1"\nexit 9\n')
    monkeypatch.setattr(played.service, "JUDGE", judge)
    node = {"SLURM_JOB_ID": "7", "SLURMD_NODENAME": NAME}
    answers = []
    root = tmp_path / ("long" * 30)
    monkeypatch.setenv("TRAINING_ROOT", str(root))
    monkeypatch.chdir(tmp_path)  # it changes it
    with played.service.listen(NAME) as server:
        for jobs in ("", "7\n"):
            played.jobs[f"--user={os.getuid()}"] = jobs
            ask = ["bash", str(_RESTARTS), "answer", "1"]
            answers.append(subprocess.run(ask, env=os.environ | node, capture_output=True, check=True).stdout)
        server.shutdown()
    assert answers == [f"{NAME} \n".encode(), f"{NAME} GPU 3 fell off {NAME}, asked\n".encode()]
