"""judge-node.sh with a check-node.sh of the tests: what it tells Slurm of the node, and what it logs."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.health.health_node import HEALTH, UNHEALTHY
from tests.unit.assets.bootstrap.step_machine import Machine

NAME, SAID = "gpu-dy-p4d-1", "nvidia-smi lists 7 of 8 GPUs"
SICK = f"[[ $1 == gpu ]] || exit 1; echo '{SAID}'; exit 9"
REASON = f"state=drain reason=training-cluster: {SAID}"
FAILED = "the checks themselves failed"
# By moment and check: exit status, change of the node in Slurm, line of the log.
CASES = (
    ("before", "exit 0", 0, "", "job 17: healthy"),
    ("before", SICK, UNHEALTHY, REASON, f"job 17: unhealthy, drained: {SAID}"),
    ("after", SICK, UNHEALTHY, REASON, f"after job 17: unhealthy, drained: {SAID}"),
    ("idle", SICK, UNHEALTHY, REASON, f"idle: unhealthy, drained: {SAID}"),
    (
        *("before", f"echo '{SAID}'", 0, f", job 17: {SAID}"),
        f"job 17: UNHEALTHY, not drained: the same is reported of most nodes: {SAID}",
    ),
    ("before", "exit 2", 0, "", f"job 17: {FAILED} (2): the job starts unchecked"),
    ("after", "exit 9", 0, "", f"after job 17: {FAILED} (9): the node stays in service"),
    ("idle", "exit 1", 0, "", f"idle: {FAILED} (1): the node stays in service"),
    ("asked", SICK, UNHEALTHY, "", f"between starts of a job: unhealthy, drained after the job: {SAID}"),
)


class Judge(Machine):
    """A ParallelCluster node of the queue gpu, without jobs, in a partition with another name."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        shutil.copy(HEALTH / "judge-node.sh", folder)
        self.write("etc/parallelcluster/cfnconfig", "cfn_scheduler_queue_name=gpu\n")
        for program, script in {"scontrol": "", "pgrep": "exit 1", "hostname": f"echo {NAME}"}.items():
            self.program(program, script)

    def judges(self, when: str, check: str = SICK) -> tuple[int, str, str]:
        """Return the exit status, the change of the node in Slurm, and the last line of the log."""
        (self.folder / "check-node.sh").write_text(check)
        self.calls()
        slurm = {} if when == "idle" else {"SLURM_JOB_ID": "17", "SLURM_JOB_PARTITION": "other"}
        done = subprocess.run(
            ["bash", str(self.folder / "judge-node.sh"), when],
            env=self.environment | slurm,
            capture_output=True,
            text=True,
        )
        assert done.stdout == (f"{SAID}\n" if when == "asked" else "")
        (*_, change) = ("", *(call for call in self.called() if call.startswith("scontrol update")))
        log = self.root / "var/log/training-cluster/health.log"
        return done.returncode, change, (log.read_text() if log.exists() else done.stderr).rstrip("\n")


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    return Judge(tmp_path)


def test_a_verdict_changes_the_node(judge: Judge) -> None:
    for when, check, status, change, line in CASES:
        found, changed, log = judge.judges(when, check)
        assert (found, bool(changed)) == (status, bool(change)), (when, check)
        assert not changed or changed.startswith(f"scontrol update nodename={NAME} ")
        assert changed.endswith(change)
        assert ("comment=training-cluster: braked at 20" in changed) == ("UNHEALTHY" in line)
        assert log.endswith(f" health: {NAME}, {line}")


def test_a_silent_controller_changes_no_verdict(judge: Judge) -> None:
    judge.program("scontrol", "echo 'Unable to contact slurm controller' >&2; exit 1")
    code, _, log = judge.judges("before")
    assert (code, "scontrol failed: the node is not drained" in log) == (UNHEALTHY, True)


def test_a_leaving_node_keeps_its_first_reason(judge: Judge) -> None:
    for state, is_drained in {
        "IDLE+CLOUD+DRAIN": False,
        "IDLE+CLOUD+POWERING_DOWN": False,
        "DOWN+CLOUD": False,
        "ALLOCATED+CLOUD": True,
        "MIXED+CLOUD+POWERING_UP": True,
    }.items():
        judge.program("scontrol", f"echo 'NodeName={NAME} Arch=x86_64 State={state} ThreadsPerCore=1'")
        code, change, log = judge.judges("after")
        assert (code, bool(change), f"not drained again: {SAID}" in log.splitlines()[-1]) == (
            UNHEALTHY,
            is_drained,
            not is_drained,
        )


def test_an_idle_node_is_judged_by_its_name(judge: Judge) -> None:
    """As ParallelCluster gave it. A node with a job is not judged."""
    judge.program("pgrep", "")
    assert judge.judges("idle") == (0, "", "")
    assert "pgrep --full slurmstepd: \\[" in "".join(judge.called())
    judge.program("pgrep", "exit 1")
    judge.write("etc/parallelcluster/slurm_plugin/slurm_nodename", "gpu-st-p4d-7\n")
    assert "nodename=gpu-st-p4d-7 " in judge.judges("idle")[1]


def test_a_wrong_moment_is_refused(judge: Judge) -> None:
    message = "judge-node.sh: the moment is sometimes; allowed: before, after, idle, asked"
    assert judge.judges("sometimes") == (1, "", message)
