"""Client commands of one Slurm (sbatch, scontrol, sinfo, scancel), as methods."""

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rehearsal.local_slurm.errors import SlurmError, tail
from rehearsal.local_slurm.jobs import Follower, Job, parse_job
from rehearsal.local_slurm.layout import Layout
from rehearsal.local_slurm.partitions import Partition

POLL_S = 0.5
POWERED_DOWN = "~"
"""End of the state of a node that is powered down."""


class SlurmClient:
    """A client that submits jobs to the Slurm of `layout` and follows them."""

    def __init__(self, *, layout: Layout, environment: Mapping[str, str]) -> None:
        self.layout = layout
        self._environment = dict(environment)

    def client_env(self) -> dict[str, str]:
        """Return the environment in which sbatch, squeue, sinfo and scontrol use this cluster."""
        return dict(self._environment)

    def user_env(self) -> dict[str, str]:
        """Return the environment in which the second user's clients and jobs find slurm.conf."""
        return self.client_env() | {"SLURM_CONF": str((self.layout.alias or self.layout.root) / "slurm.conf")}

    def submit(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        user: str = "",
    ) -> int:
        """Run `sbatch <argv>` and return the job id.

        `env` extends client_env() and reaches the job. `cwd` is the folder of the job and, unless argv
        names another, of its output file; layout.jobs by default. `user` is the id of the second user.
        Raises SlurmError with sbatch's own message.
        """
        as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        if user:
            env = self.user_env() | dict(env or {})
        answer = self._run([*as_user, "sbatch", "--parsable", *argv], env=env, cwd=cwd or self.layout.jobs)
        return int(answer.strip().partition(";")[0])

    def job(self, job_id: int) -> Job:
        """Read the present state of a job from slurmctld. Raises SlurmError for an unknown id."""
        return parse_job(self._run(["scontrol", "show", "job", "--oneliner", str(job_id)]))

    def job_state(self, job_id: int) -> str:
        """Return the job's state: PENDING, RUNNING, COMPLETED, FAILED, ... (squeue(1), JOB STATE CODES)."""
        return self.job(job_id).state

    def wait(self, job_id: int, *, timeout_s: float, on_line: Callable[[str], None] | None = None) -> Job:
        """Wait until the job has ended, in any state; each line of its output goes to `on_line`.

        Raises SlurmError after `timeout_s` seconds, with the end of the output; the job continues. Raises
        it at once, with the node's log, if a node of the job cannot start.
        """
        follower = Follower(self.job(job_id).output, on_line or (lambda _: None))
        deadline = time.monotonic() + timeout_s
        while not (job := self.job(job_id)).has_ended:
            follower.read()
            if job.state == "PENDING":
                self._check_nodes()
            if time.monotonic() > deadline:
                power = tail(self.layout.log / "power.log", lines=5)
                raise SlurmError(
                    f"Job {job_id} is still {job.state} ({job.reason}) after {timeout_s:.0f} s. "
                    f"`scancel {job_id}` ends it.\n{tail(job.output)}\n{power}"
                )
            time.sleep(POLL_S)
        follower.read(last=True)
        return job

    def _check_nodes(self) -> None:
        down = [name for name, state in self.node_states().items() if state.startswith("down")]
        if down:
            log = tail(self.layout.log / f"slurmd-{down[0]}.log", lines=8)
            raise SlurmError(f"Nodes do not start: {', '.join(down)}.\n{log}")

    def cancel(self, job_id: int) -> None:
        """Cancel a job with `scancel`: it gets SIGTERM, and SIGKILL after KillWait."""
        self._run(["scancel", str(job_id)])

    def lose(self, node: str) -> None:
        """Give a node up at once, as ParallelCluster does when its instance is lost."""
        self._run(["scontrol", "update", f"NodeName={node}", "State=POWER_DOWN_FORCE", "Reason=lost"])

    def start_static_nodes(self, partitions: Sequence[Partition]) -> None:
        """Start the static nodes that are powered down, as many as this machine runs."""
        names = [name for partition in partitions for name in partition.static_names]
        self._power_up(names[: self.layout.max_node_processes])

    def _power_up(self, names: Sequence[str]) -> None:
        """Start those of the nodes that are powered down."""
        states = self.node_states() if names else {}
        down = [name for name in names if states[name].endswith(POWERED_DOWN)]
        if down:
            self._run(["scontrol", "update", f"NodeName={','.join(down)}", "State=POWER_UP"])

    def node_states(self) -> dict[str, str]:
        """Return sinfo's state of each node: idle, mixed, idle~ (powered down), idle# (powering up), ..."""
        lines = self._run(["sinfo", "--all", "--noheader", "--Node", "--format=%N %T"]).splitlines()
        states: dict[str, str] = {}
        for line in lines:
            name, state = line.split()
            states[name] = state
        return states

    def _run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> str:
        environment = self.client_env() | dict(env or {})
        done = subprocess.run(argv, env=environment, cwd=cwd, check=False, capture_output=True, text=True)
        if done.returncode:
            said = done.stderr.strip() or done.stdout.strip()
            raise SlurmError(f"`{' '.join(argv)}` failed with code {done.returncode}: {said}")
        return done.stdout
