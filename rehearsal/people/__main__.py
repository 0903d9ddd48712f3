"""`python -m rehearsal.people FOLDER`: two people share a cluster; print what each may do and used."""

import argparse
import json
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ops.account.head_node import CommandError
from ops.users.usage import read_usage, render_usage
from rehearsal.people.attacks import ATTACKS, run_tests, tried
from rehearsal.people.nodes import SHARED, attempts_on_nodes
from rehearsal.people.world import INSIDE, SHORT, World, enter
from rehearsal.problems import RehearsalError
from training_cluster.flags.settings import Settings
from training_cluster.rules.context import read_settings

USERS = """\
accounts:
  nlp: {gid: 6001, share: 3, max_nodes: 2}
  vision: {gid: 6002}
users:
  alice: {uid: 5001, account: nlp}
  bob: {uid: 5002, account: vision, max_jobs: 1}
"""
LOCKED = USERS.replace("bob: {", "bob: {locked: true, ")
JOBS = 5
"""Jobs of each person."""
REAL = "users, folders, jobs, nodes with sshd and iptables, Slurm with slurmdbd and MariaDB, accounts, limits"
NOT_REAL = "cgroups, sudo, quotas of Lustre, AWS: docs/rehearsal.md"
_TIMEOUT_S = 600.0
# A workload of two lines, since permissions do not depend on what is trained.
TINY = {
    "tiny/prepare.sh": 'mkdir -p "$DATA_DIR" && echo data >>"$DATA_DIR/$SLURM_JOB_USER"\n',
    "tiny/train.sh": 'echo "of $(id -un)" >>"$CHECKPOINT_DIR/model"\nsleep 1\n',
    "tiny/requirements.txt": "",
}


def main() -> int:
    """Run the program; return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", action="store_true", help="print the results as JSON at the end")
    parser.add_argument(
        "--deploys", type=int, default=20, help="deploys during which bob tries to replace the scripts"
    )
    parser.add_argument(
        "--only", choices=["cluster", "nodes"], help="without tests: all, or what bob tries on alice's nodes"
    )
    arguments = parser.parse_args()
    try:
        if INSIDE not in os.environ:
            enter(arguments.folder.resolve(), sys.argv[1:])
        happened = rehearse_nodes() if arguments.only == "nodes" else rehearse(arguments.deploys)
        if not arguments.only:
            happened["taken"] += run_tests()
    except RehearsalError as error:
        print(error, file=sys.stderr)
        return 1
    if arguments.json:
        print(json.dumps(happened))
    wrong = [*happened["taken"], *happened["locked"]]
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0


def rehearse(deploys: int) -> dict[str, Any]:
    """Let both people train and attempt what they are not allowed to do; return the results."""
    started = time.monotonic()
    world = World(settings=settings_with(USERS))
    try:
        with world.slurm:
            world.boot(TINY)
            _say(f"a Slurm with accounting and two users is up after {time.monotonic() - started:.0f} s:")
            _say("alice of the project nlp (share 3, 2 nodes), bob of vision (share 1, a job at a time)")
            # Names of the next jobs' outputs, in the folder of all.
            world.as_user("bob", "bash", "-c", "umask 077; touch $TRAINING_SHARED/runs/job-{1..200}.log")
            jobs = {name: [submit(world, name) for _ in range(JOBS)] for name in ("alice", "bob")}
            refused = submit_beyond_limit(world)
            for name, ids in jobs.items():
                wait_for(world, name, ids)
            taken = [
                *attempts(world, jobs["alice"][0]),
                *tried("traps", traps(world)),
                *own_acts(world, jobs["alice"][0]),
                *tried("race", race(world, deploys)),
                *attempts_on_nodes(world),
            ]
            found = read_usage(world.head_node("bob"), by="user", since="2000-01-01", until="now")
            by_account = read_usage(world.head_node("bob"), by="account", since="2000-01-01", until="now")
            print(render_usage(found, by="user", since="2000-01-01", until="now", cluster_name="rehearsal"))
            sacct = world.as_user(
                "bob",
                *("sacct", "--allusers", "--allocations", "--noheader", "--parsable2", "--duplicates"),
                *("--starttime=2000-01-01", "--format=User,Account,State,ElapsedRaw,NNodes"),
            ).stdout
            shares = world.as_user("bob", "sshare", "-nPa", "--format=Account,User,RawShares").stdout
            locked = [*tried("lock", lock(world, jobs["bob"][0]))]
            print(f"  real: {REAL}\n  not emulated: {NOT_REAL}")
            return {
                "jobs": jobs,
                "locked": locked,
                "taken": taken,
                "refused": refused,
                "usage": {each.group: [each.jobs, each.node_hours, each.gpu_hours] for each in found},
                "by_week": [
                    each.jobs
                    for each in read_usage(world.head_node("bob"), by="week", since="2000-01-01", until="now")
                    if re.fullmatch(r"\d{4}-W\d\d", each.group)
                ],
                "by_account": {each.group: each.jobs for each in by_account},
                "sacct": sacct.splitlines(),
                "shares": shares,
            }
    finally:
        world.slurm.stop()


def rehearse_nodes() -> dict[str, Any]:
    """Let bob reach the nodes of a job of alice, on a Slurm without accounting; return the results."""
    world = World(settings=settings_with(USERS, accounting="off"), has_accounting=False)
    with world.slurm:
        world.boot(TINY)
        return {"taken": [*attempts_on_nodes(world)], "locked": []}


def settings_with(users: str, accounting: str = "new") -> Settings:
    """Return the settings of a cluster with this file of users."""
    file = SHORT / "users.yaml"
    file.write_text(users)
    queues = SHORT / "queues.yaml"
    queues.write_text(f"{SHARED}: {{family: m6i, shared: true}}\n")
    flags = {"family": "p4d", "users": str(file), "queues": str(queues), "accounting": accounting}
    return read_settings(flags)


def submit(world: World, user: str, *options: str) -> str:
    """Submit a job of the tiny workload as trainctl does for a user; return its id."""
    script = f"{world.variables['TRAINING_SHARED']}/training/job.slurm"
    log = f"--output={world.variables['TRAINING_SHARED']}/runs/job-%j.log"
    words = ("sbatch", "--parsable", "--nodes=1", log, *options, script, "tiny")
    try:
        return world.head_node(user).run_script("submit-once.sh", f"trainctl-{uuid.uuid4()}", *words).strip()
    except CommandError as error:
        raise RehearsalError(f"{user} cannot submit: {error}") from None


def submit_beyond_limit(world: World) -> dict[str, str]:
    """Submit jobs that the file of users does not allow; return the words of the refusal, or of the wait."""
    script = f"{world.variables['TRAINING_SHARED']}/training/job.slurm"
    other = world.as_user("alice", "sbatch", "--account=vision", "--nodes=1", script, "tiny")
    big = submit(world, "alice", "--nodes=3")
    time.sleep(6)
    reason = world.as_user("alice", "squeue", "--noheader", f"--jobs={big}", "--format=%r").stdout.strip()
    world.as_user("alice", "scancel", big)
    _say(f"alice's job for vision is refused: {other.stderr.strip().rpartition(': ')[2]}")
    _say(f"alice's job of 3 nodes waits: {reason}")
    return {"other account": other.stderr.strip(), "nodes of the account": reason}


def wait_for(world: World, user: str, jobs: list[str]) -> None:
    """Wait until a user's jobs have ended. Raises RehearsalError for one that failed."""
    deadline = time.monotonic() + _TIMEOUT_S
    for job in jobs:
        ended = world.slurm.wait(int(job), timeout_s=max(1.0, deadline - time.monotonic()))
        if not ended.is_completed:
            text = ended.output.read_text() if ended.output.exists() else ""
            raise RehearsalError(f"job {job} ended as {ended.state}:\n{text[-2000:]}")
        _say(f"{user}'s job {job} is done")


def attempts(world: World, job: str) -> Iterator[str]:
    """Let bob try to read, change and end what belongs to alice; yield each attempt that succeeds."""
    waits = submit(world, "alice", "--hold")
    world.as_user("alice", "sh", "-c", "echo secret >~/.netrc; mkdir -p $TRAINING_VENVS/tiny/bin")
    names = ("env", f"RUN=tiny/job-{job}", f"JOB={job}", f"WAITS={waits}")
    for each in (each for each in ATTACKS.values() if each.by.startswith("$ ")):
        argv = (*names, "bash", "-c", each.by[2:])
        wrong = ["it happened"] if world.as_user("bob", *argv).returncode == 0 else []
        # A command that fails for its owner too shows nothing.
        if each.attack.startswith("read") and world.as_user("alice", *argv).returncode:
            wrong.append("not even alice can")
        yield from tried(each.by, wrong)
    if world.as_user("alice", "scancel", waits).returncode:
        yield "alice cannot end her job"


def traps(world: World) -> Iterator[str]:
    """Let bob put links and folders at the paths of alice's next run; yield each into which she writes."""
    fsx = world.variables["TRAINING_SHARED"]
    trap = f"{fsx}/users/bob/trap"
    world.as_user("bob", "bash", "-c", f"mkdir -m 777 {trap}; chmod 711 {fsx}/users/bob")
    tries = {
        "a link for a run": f"ln -s {trap} {fsx}/runs/tiny/RUN",
        "a link for checkpoints": f"ln -s {trap} {fsx}/checkpoints/tiny/RUN",
        "a folder for checkpoints": f"mkdir -m 777 {fsx}/checkpoints/tiny/RUN",
    }
    for number, (what, command) in enumerate(tries.items()):
        run = f"hers-{number}"
        made = world.as_user("bob", "bash", "-c", command.replace("RUN", run))
        submitted = f"RUN_NAME={run} sbatch --wait --nodes=1 {fsx}/training/job.slurm tiny"
        said = world.as_user("alice", "bash", "-c", f"cd ~ && {submitted}; cat train-*.log | tail -n 2")
        caught = world.as_user("bob", "find", trap, f"{fsx}/checkpoints/tiny/{run}/", "-type", "f").stdout
        if made.returncode or caught or f"the run {run} of tiny belongs to bob" not in said.stdout:
            yield f"bob's trap, {what}: {made.stderr}{caught}{said.stdout}{said.stderr}"


def own_acts(world: World, job: str) -> Iterator[str]:
    """Let alice resume her run; yield a sentence if she cannot."""
    fsx = world.variables["TRAINING_SHARED"]
    model = f"{fsx}/checkpoints/tiny/job-{job}/model"
    again = f"RUN_NAME=job-{job} sbatch --wait --nodes=1 {fsx}/training/job.slurm tiny"
    said = world.as_user("alice", "bash", "-c", f"{again} && cat {model}")
    if said.stdout.splitlines()[-2:] != ["of alice", "of alice"]:
        yield f"alice cannot resume her run: {said.stdout}{said.stderr}"
    else:
        _say("alice resumed her run")


def race(world: World, deploys: int) -> Iterator[str]:
    """Let bob create files with the scripts' names during some deploys; yield each success."""
    fsx = Path(world.variables["TRAINING_SHARED"])
    takes = f"cd {fsx}; while :; do mkdir training .training-new; echo x >training/job.slurm; done"
    thief = subprocess.Popen(
        ["setpriv", "--reuid", "bob", "--regid", "bob", "--init-groups", "bash", "-c", takes],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for deploy in range(deploys):
            (SHORT / "bundle" / "training" / "tiny" / "README.md").write_text(f"{deploy}\n")
            world.run_step("75")
            files = [fsx / "training", *(fsx / "training").rglob("*")]
            if strangers := [path for path in files if path.lstat().st_uid != 0]:
                yield f"bob owns {strangers[0]} after deploy {deploy}"
            if (fsx / "training" / "tiny" / "README.md").read_text() != f"{deploy}\n":
                yield f"deploy {deploy} did not arrive"
    finally:
        thief.kill()
        thief.wait()


def lock(world: World, job: str) -> Iterator[str]:
    """Lock bob by a deploy of another users file, then unlock him; yield each unexpected result."""
    model = Path(world.variables["TRAINING_SHARED"]) / "checkpoints" / "tiny" / f"job-{job}" / "model"
    for text, is_locked in ((LOCKED, True), (USERS, False)):
        world.settings = settings_with(text)
        world.boot(TINY)
        login = subprocess.run(
            ["su", "--shell=/bin/sh", "bob", "-c", "true"], capture_output=True, text=True, check=False
        )
        if (login.returncode != 0) != is_locked:
            yield f"PAM says of bob, {is_locked=}: {login.stderr.strip() or 'welcome'}"
        try:
            world.as_user("bob", "scancel", submit(world, "bob", "--hold"))
            if is_locked:
                yield "bob can submit a job though he is locked"
        except RehearsalError as error:
            if not is_locked:
                yield f"bob is unlocked but cannot submit a job: {error}"
        if model.read_text() != "of bob\n":
            yield f"bob's checkpoint is gone, {is_locked=}"


def _say(text: str) -> None:
    print(f"  {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
