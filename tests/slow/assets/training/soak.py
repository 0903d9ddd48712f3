"""A busy cluster by seed: jobs and arrays of two users on 32 nodes, and what happens to nodes and daemons.

`python -m tests.slow.assets.training.soak FILE FIRST LAST [parallelcluster]` tries seeds and adds a line
each to FILE; it continues where FILE ends. Without the last word, SlurmdTimeout and KillWait are a tenth of
ParallelCluster's, so that a seed takes three minutes.
"""

import contextlib
import itertools
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import astuple, dataclass, field, fields
from datetime import datetime
from pathlib import Path

import psutil

from ops.goodput.forecast import best_interval, train_share
from tests.slow.assets.training.tiny import TINY, begin_again, daemon, node_of, of_node, scontrol, switch_off
from tests.slow.assets.training.training import Training, local_slurm
from training_cluster.cluster.config import JOB_SETTINGS

NODES, STEPS, EVERY = 32, 60, 5
# Seconds of an undisturbed step. Seconds in which events come, after which a node is replaced, and of a seed.
STEP_S, EVENTS_S, REPLACED_S, LONGEST_S = 0.5, 60.0, 10.0, 600.0
USER = "65534"
Look = tuple[float, float]
"""Time of a look at Slurm, and seconds since the one before."""
UNFINISHED = {"RUNNING", "PENDING", "COMPLETING", "CONFIGURING", "REQUEUED"}
OF_ALL = ("runs", "checkpoints", "datasets")
# By name: whether the second user submits it, options of sbatch, settings. They want more nodes than exist.
JOBS: list[tuple[str, bool, list[str], dict[str, str]]] = [
    *((f"plain-{n}", n % 2 == 1, ["--nodes=4"], {}) for n in range(4)),
    ("spare", False, ["--nodes=4"], {"SPARES": "1"}),
    ("range", True, ["--nodes=2-5"], {"MIN_NODES": "2"}),
    ("srun", True, ["--nodes=3"], {"LAUNCHER": "srun"}),
    ("alone", False, ["--nodes=1"], {}),
    ("full", False, ["--nodes=2"], {}),
    ("array", True, ["--nodes=1", "--array=0-2"], {}),
]
KINDS = (
    "rank dies",
    "rank hangs",
    "node lost",
    "node cut off",
    "drain",
    "prolog",
    "requeue",
    "controller",
    "reconfigure",
    "disk",
)
PROLOG = """\
#!/bin/bash
export PATH=/usr/bin:/bin
if [[ -e {bad}/$SLURMD_NODENAME ]]; then
  scontrol update nodename=$SLURMD_NODENAME state=drain reason=prolog
  exit 1
fi
"""


@dataclass(kw_only=True)
class Result:
    """Outcome of a seed. Shares are of the seconds in which jobs had their nodes; a job counts once."""

    seed: int
    seconds: int = 0
    goodput: float = 0.0
    """Useful steps as a share of those of this seed's undisturbed runs in the same time, without saves."""
    bound: float = 0.0
    """Goodput that the forecast of `trainctl price --days` gives for the three means."""
    save_s: float = 0.0
    restart_s: float = 0.0
    """Mean seconds from a fault to the next step."""
    between_s: float = 0.0
    """Mean seconds between interruptions."""
    wrong: list[str] = field(default_factory=list)
    """Jobs that did not finish once with all steps and the right loss, and nodes drained without a reason."""
    events: list[str] = field(default_factory=list)

    def line(self) -> str:
        words = ("; ".join(each) if isinstance(each, list) else f"{each:.5g}" for each in astuple(self))
        return "\t".join(words)


class Soak:
    """One seed on a cluster that runs."""

    def __init__(self, training: Training, seed: int) -> None:
        self.training, self.slurm = training, training.slurm
        self.dice = random.Random(seed)
        self.result = Result(seed=seed)
        self.bad_since: dict[str, float] = {}
        self.held, self.queued = defaultdict[str, float](float), defaultdict[str, list[Look]](list)
        """Seconds for which runs had their nodes, from their first start on; looks at which they had none."""
        self.faults: list[tuple[str, float]] = []
        """Runs of which a rank or a node was hit, and when."""
        self.saved = defaultdict[str, list[tuple[float, int]]](list)
        """Newest checkpoint of a run, at each look."""
        self.tasks: dict[str, int] = {}
        """Job id by run."""
        self.disk = training.run_dir("full") / "others"

    def submit(self) -> None:
        for name, is_second, options, settings in JOBS:
            env = settings | {"MAX_STEPS": str(STEPS), "STEP_S": str(STEP_S), "CHECKPOINT_EVERY": str(EVERY)}
            env |= {"HANG_TIMEOUT_S": "12", "WATCH_S": "10", "CHECK_S": "10"}
            run = "" if name == "array" else name
            user = USER if is_second and os.geteuid() == 0 else ""
            if user:
                env["TRAINING_VENVS"] = str(self.training.shared / "venvs-of-another")
            job_id = self.training.submit(run, *options, user=user, **env)
            if name == "array":
                self.tasks |= {f"job-{job_id + n}": job_id + n for n in range(1, 3)}
                self.tasks[f"job-{job_id}"] = job_id
            else:
                self.tasks[name] = job_id

    def states(self) -> dict[int, str]:
        """Return the state of each job. Empty while slurmctld does not answer."""
        lines = self.ask("squeue", "--array", "--states=all", "--format=%A %T")
        return {int(job): state for job, state in (line.split() for line in lines)}

    def ask(self, *argv: str) -> list[str]:
        """Return the lines of squeue or sinfo; none while slurmctld does not answer."""
        env = self.slurm.client_env()
        done = subprocess.run([*argv, "--noheader"], env=env, capture_output=True, text=True, check=False)
        return done.stdout.splitlines() if done.returncode == 0 else []

    def run(self) -> Result:
        """Let jobs train while events come; return once all have ended, or after LONGEST_S."""
        began = looked = time.monotonic()
        next_event = began + 15
        self.submit()
        while True:
            time.sleep(0.5)
            now, states = time.monotonic(), self.states()
            running = [run for run, job in self.tasks.items() if states.get(job) == "RUNNING"]
            if states:  # slurmctld may just restart
                self.look(running, now - looked)
                looked = now
            if running and next_event < now < began + 15 + EVENTS_S:
                self.event(self.dice.choice(KINDS), self.dice.choice(running))
                next_event = now + self.dice.uniform(2, 8)
            self.replace(now)
            if (states and not UNFINISHED.intersection(states.values())) or now > began + LONGEST_S:
                break
        self.result.seconds = round(time.monotonic() - began)
        self.judge(states)
        for wrong in self.result.wrong:
            run = wrong.split()[0]
            if run in self.tasks:
                log = (self.slurm.layout.log / "slurmctld.log").read_text()
                print(f"{wrong}\n{self.training.output(self.tasks[run])}\n{log}", file=sys.stderr)
        return self.result

    def look(self, running: list[str], length: float) -> None:
        """Add the seconds since the last look to each run that has started; note newest checkpoints."""
        for run in self.tasks:
            newest = self.training.shared / "checkpoints" / "tiny" / run / "latest_step"
            with contextlib.suppress(OSError):
                self.saved[run].append((time.time(), int(newest.read_text())))
            if run in running and self.words(run, "starts"):
                self.held[run] += length
            else:
                self.queued[run].append((time.time(), length))

    def event(self, kind: str, run: str) -> None:
        """Do something to a run, to one of its nodes, or to Slurm; nothing if the run has no rank now."""
        pids = sorted(self.training.run_dir(run).glob("pid-*"))
        if kind in ("rank dies", "rank hangs", "node lost", "node cut off", "drain"):
            try:
                pid = int(self.dice.choice(pids).read_text())
                node = node_of(pid)
            except (IndexError, ValueError, OSError, psutil.Error):
                return
            if kind in ("rank dies", "rank hangs"):
                os.kill(pid, signal.SIGKILL if kind == "rank dies" else signal.SIGSTOP)
            elif kind == "drain":
                self.say("update", f"nodename={node}", "state=drain", "reason=soak")
            else:
                self.lose(node, is_cut=kind == "node cut off")
            if kind != "drain":
                self.faults.append((run, time.time()))
            run += f" on {node}"
        elif kind == "prolog":
            run = f"train-dy-p4d-{self.dice.randrange(1, NODES + 1)}"
            (self.training.shared / "bad" / run).touch()
        elif kind == "requeue":
            self.say("requeue", "incomplete", str(self.tasks[run]))
            # The id of an array's last task is the array's: all its tasks are queued again.
            array = [task for task in self.tasks if task.startswith("job-")]
            hit = array if self.tasks[run] == min(self.tasks[each] for each in array) else [run]
            self.faults += [(each, time.time()) for each in hit]
        elif kind == "controller":
            run = "slurmctld"
            # Killed, it forgets the last 5 s, and an ended job holds its nodes for minutes.
            begin_again(
                daemon("slurmctld"), lambda argv: [word for word in argv if word != "-c"], signal.SIGTERM
            )
        elif kind == "reconfigure":
            run = "slurmctld"
            self.say("reconfigure")
        elif self.disk.parent.is_mount():
            run = "full"
            with contextlib.suppress(OSError), self.disk.open("wb", buffering=0) as file:
                while file.write(bytes(4096)):
                    pass
        self.result.events.append(f"{kind} ({run})")

    def say(self, *words: str) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):  # slurmctld restarts
            scontrol(self.training, *words)

    def lose(self, node: str, *, is_cut: bool) -> None:
        """Switch a node off, or stop its daemons alone, as a cut network does."""
        if is_cut:
            for process in of_node(node):
                with contextlib.suppress(psutil.Error):
                    if process.name().startswith("slurm"):
                        process.send_signal(signal.SIGSTOP)
        else:
            switch_off(node)
        self.bad_since[node] = time.monotonic()

    def replace(self, now: float) -> None:
        """Replace nodes that are down, drained or lost, as ParallelCluster does; free the full disk."""
        with contextlib.suppress(FileNotFoundError):
            if time.time() - self.disk.stat().st_mtime > 8:
                self.disk.unlink()
        states = dict(line.split() for line in self.ask("sinfo", "--Node", "--format=%N %T"))
        for node, state in states.items():
            if state.startswith(("down", "drained")):
                self.bad_since.setdefault(node, now)
        for node, since in list(self.bad_since.items()):
            if now - since < REPLACED_S or not states:
                continue
            del self.bad_since[node]
            (self.training.shared / "bad" / node).unlink(missing_ok=True)
            switch_off(node)
            self.say("update", f"nodename={node}", "state=power_down_force", "reason=replaced")

    def judge(self, states: dict[int, str]) -> None:
        """Compare each run with an undisturbed one, and add up the time."""
        useful, usual, saves, restarts = 0, list[float](), list[float](), list[float]()
        for run, job in self.tasks.items():
            rows = self.training.metrics(run)
            right = [8.0 * 0.97**step for step in range(1, STEPS + 1)]
            if states.get(job) != "COMPLETED":
                self.result.wrong.append(f"{run} ({job}) is {states.get(job)}")
            elif [row["step"] for row in rows] != list(range(1, STEPS + 1)):
                self.result.wrong.append(f"{run} has other steps: {[row['step'] for row in rows]}")
            elif any(abs(row["loss"] - loss) > 1e-6 for row, loss in zip(rows, right, strict=True)):
                self.result.wrong.append(f"{run} has other losses")
            self.result.wrong += self.lost_steps(run)
            times = [datetime.fromisoformat(row["time"]).timestamp() for row in rows]
            if len(times) < 2:
                continue
            waits = [row["save_s"] for row in rows if "save_s" in row]
            if len(self.words(run, "starts")) == 1:
                usual.append((self.held[run] - sum(waits)) / len(rows))
            useful += len(rows)
            saves += waits
            restarts += self.restarts_s(run, times)
        held = sum(self.held.values())
        between = held / max(len(restarts), 1)
        save, restart = statistics.mean(saves), statistics.mean(restarts or [0.0])
        self.result.save_s, self.result.restart_s, self.result.between_s = save, restart, between
        self.result.goodput = useful * statistics.median(usual or [STEP_S]) / held
        every = best_interval(save_s=save, between_s=between)
        self.result.bound = train_share(every_s=every, save_s=save, between_s=between, restart_s=restart)
        reasons = self.ask("sinfo", "--list-reasons", "--Node", "--format=%N %E")
        self.result.wrong += [
            f"{line}: drained without a reason" for line in reasons if line.endswith(" none")
        ]

    def lost_steps(self, run: str) -> Iterator[str]:
        """Yield the starts that began before a checkpoint that the run had, or after its end.

        A run on nodes that are cut off may end without Slurm's knowledge; its next start has no step to do.
        """
        is_hit = any(hit == run for hit, _ in self.faults)
        for _, step, began, *_ in self.words(run, "starts"):
            at = datetime.fromisoformat(began).timestamp()
            newest = max((each for seen, each in self.saved[run] if seen < at - 1), default=0)
            if int(step) < newest or (int(step) >= STEPS and not is_hit):
                yield f"{run} starts from {step}, and had a checkpoint of {newest}"

    def words(self, run: str, name: str) -> list[list[str]]:
        """Return the words of each line of a file of a run; none where a start never came so far."""
        file = self.training.run_dir(run) / name
        return [line.split() for line in file.read_text().splitlines()] if file.exists() else []

    def restarts_s(self, run: str, times: list[float]) -> list[float]:
        """Return the seconds from each fault to the next step (`times`), without those in the queue."""
        ends = {words[1]: words[2] for words in self.words(run, "ends")}
        found = []
        for last, start in itertools.pairwise(self.words(run, "starts")):
            began = datetime.fromisoformat(start[2]).timestamp()
            ended = datetime.fromisoformat(ends.get(last[0], start[2])).timestamp()
            faults = [at for hit, at in self.faults if hit == run and at <= ended + 1]
            since = max(faults, default=ended)
            if at := next((at for at in times if at > began), None):
                found.append(
                    at - since - sum(length for seen, length in self.queued[run] if since < seen <= at)
                )
        return found


@contextlib.contextmanager
def cluster(*, is_scaled: bool) -> Iterator[Training]:
    """A Slurm with 32 nodes and job.slurm, in a folder that a second user can reach."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        prolog = folder / "prolog.d"
        prolog.mkdir()
        (folder / "epilog.d").mkdir()
        (folder / "epilog.d" / "epilog").symlink_to("/bin/true")
        (prolog / "prolog").write_text(PROLOG.format(bad=folder / "fsx" / "bad"))
        (prolog / "prolog").chmod(0o755)
        shared = folder / "fsx"
        full = shared / "runs" / "tiny" / "full"
        full.mkdir(parents=True)
        mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(full)]
        is_mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
        fast = {"KillWait": 60, "SlurmdTimeout": 18} if is_scaled else {"SlurmdTimeout": 180}
        try:
            with local_slurm(
                folder,
                mark="tiny",
                suspend_time_s=300,
                second_user="nobody" if os.geteuid() == 0 else None,
                nodes=NODES,
                prolog=prolog,
                settings=[{**JOB_SETTINGS, **fast}],
            ) as slurm:
                slurm.layout.jobs.chmod(0o1777)
                training = Training(
                    slurm, folder, workload="tiny", env={"TRAINING_VENVS": str(folder / "venvs")}
                )
                shutil.copytree(TINY, shared / "training" / "tiny")
                written = ("bad", "venvs-of-another", *OF_ALL, *(f"{each}/tiny" for each in OF_ALL))
                folders = [str(shared / each) for each in written]
                subprocess.run(["install", "--directory", "--mode=1777", *folders], check=True)
                yield training
        finally:
            if is_mounted:
                subprocess.run(["umount", "--lazy", full], check=True)


def soak(seed: int, *, is_scaled: bool) -> Result:
    """Try one seed on a cluster of its own."""
    with cluster(is_scaled=is_scaled) as training:
        return Soak(training, seed).run()


def main(file: Path, first: int, last: int, *, is_scaled: bool) -> None:
    """Try the seeds that FILE does not have yet."""
    if not file.exists():
        file.write_text("\t".join(each.name for each in fields(Result)) + "\n")
    tried = {line.split("\t")[0] for line in file.read_text().splitlines()}
    for seed in range(first, last + 1):
        if str(seed) not in tried:
            line = soak(seed, is_scaled=is_scaled).line()
            with file.open("a") as stream:
                stream.write(f"{line}\n")
            print(line, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), is_scaled=len(sys.argv) == 4)
