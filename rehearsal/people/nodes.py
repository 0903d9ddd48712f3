"""Attempts of a second user on the nodes of another's job: a share, files, SSH, torch's rendezvous."""

import subprocess
import time
from collections.abc import Iterator

from rehearsal.people.attacks import tried
from rehearsal.people.world import SHORT, SITE, SSHD, World
from rehearsal.problems import RehearsalError

SHARED = "open"
"""Queue whose users share nodes."""
_PORT = 12345
_TIMEOUT_S = 60.0
_JOIN = """\
import datetime, sys, torch.distributed as dist
address, rank, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
limit = datetime.timedelta(seconds=seconds)
dist.init_process_group("gloo", f"tcp://{address}", rank=rank, world_size=2, timeout=limit)
dist.barrier()
print("joined", flush=True)
"""


def attempts_on_nodes(world: World) -> Iterator[str]:
    """Let alice run a job on two nodes, and bob reach them; yield each unexpected result."""
    yield from tried("private_folders", private_folders(world))  # first: her account has a limit of nodes
    job, nodes = _begin(world, "alice", 2)
    yield from tried("share", share(world, nodes[0]))
    if SSHD.is_dir():
        yield from tried("ssh", ssh(nodes[0]))
    else:
        _say("not tried: SSH to a node, since make setup found no packages of sshd and pam_slurm_adopt")
    if SITE.is_dir():
        yield from tried("join", join(world, job, nodes))
    else:
        _say("not tried: torch's rendezvous, since no environment has torch: type make environment")
    world.as_user("alice", "scancel", job)
    while world.as_user("alice", "squeue", "--noheader", f"--jobs={job}").stdout:
        time.sleep(0.2)
    if SSHD.is_dir() and (said := _log_in("alice", nodes[0])) != "refused":
        yield f"alice without a job logs in to {nodes[0]}: {said}"


def _begin(world: World, user: str, number: int, *more: str) -> tuple[str, list[str]]:
    """Start a job that waits; return its id and its nodes."""
    options = ("--parsable", f"--nodes={number}", "--ntasks-per-node=1", "--output=/dev/null", *more)
    said = world.as_user(user, "sbatch", *options, "--wrap", "sleep 600")
    job, deadline = said.stdout.strip(), time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        listed = world.as_user(user, "squeue", "--noheader", f"--jobs={job}", "--format=%T %N").stdout.split()
        if listed[:1] == ["RUNNING"]:
            return job, world.as_user(user, "scontrol", "show", "hostnames", listed[1]).stdout.split()
        time.sleep(0.2)
    raise RehearsalError(f"the job of {user} does not start: {said.stderr}")


def share(world: World, node: str) -> Iterator[str]:
    """Let both ask for a CPU of a node of alice's job."""
    for user, may in (("alice", True), ("bob", False)):
        said = world.as_user(user, "srun", "--immediate=5", f"--nodelist={node}", "--mpi=none", "hostname")
        if (said.returncode == 0) != may:
            yield f"{user} on a node of alice's job, {may=}: {said.stdout}{said.stderr}"


def private_folders(world: World) -> Iterator[str]:
    """Let both have a job on one node; yield which files a job finds there, if not exactly its own."""
    jobs, files = {}, ("/tmp/of-NAME", "/dev/shm/of-NAME")  # noqa: S108 - a job's own
    for user in ("alice", "bob"):
        jobs[user], _ = _begin(world, user, 1, f"--partition={SHARED}")
        step = ("srun", "--overlap", f"--jobid={jobs[user]}", "--mpi=none")
        world.as_user(user, *step, "touch", *(each.replace("NAME", user) for each in files))
        found = world.as_user(user, *step, "find", "/tmp", "/dev/shm", "-name", "of-*")  # noqa: S108
        if sorted(found.stdout.split()) != sorted(each.replace("NAME", user) for each in files):
            yield f"{user}'s job on a shared node finds {found.stdout.split()}: {found.stderr}"
    for user, job in jobs.items():
        world.as_user(user, "scancel", job)


def ssh(node: str) -> Iterator[str]:
    """Let bob, and those who may, log in to a node of alice's job."""
    for user, wanted in (
        ("alice", "alice"),
        ("bob", "refused"),
        ("clusteruser", "clusteruser"),
        ("root", "root"),
    ):
        if (said := _log_in(user, node)) != wanted:
            yield f"ssh {user}@{node}: {said}, not {wanted}"


def _log_in(user: str, node: str) -> str:
    """Return the name that a session has, `refused`, or ssh's message."""
    options = [f"-oIdentityFile={SHORT}/key", "-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null"]
    done = subprocess.run(
        ["ssh", "-oBatchMode=yes", "-oLogLevel=INFO", *options, f"{user}@{node}", "id", "-un"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    denied = "pam_slurm_adopt" in done.stderr
    return done.stdout.strip() or ("refused" if denied else done.stderr.strip())


def join(world: World, job: str, nodes: list[str]) -> Iterator[str]:
    """Let bob join a process group of torch in alice's job, then her second node."""
    (SHORT / "join.py").write_text(_JOIN)
    own, (theirs, *_) = _begin(world, "bob", 1)
    rendezvous = f"{nodes[0]}:{_PORT}"

    def rank(number: int, limit_s: float) -> list[str]:
        python = ["env", f"PYTHONPATH={SITE}", "GLOO_SOCKET_IFNAME=eth0", f"{SHORT}/python/bin/python3", "-B"]
        return [*python, f"{SHORT}/join.py", rendezvous, str(number), str(limit_s)]

    def on(job: str, node: str) -> list[str]:
        return ["srun", "--overlap", f"--jobid={job}", f"--nodelist={node}", "--nodes=1", "--mpi=none"]

    with world.started_as_user("alice", *on(job, nodes[0]), *rank(0, 90)) as first:
        _wait_for_port(nodes[0])
        for place, step in (("a node of his own", on(own, theirs)), ("the head node", [])):
            said = world.as_user("bob", *step, *rank(1, 3))
            if "DistNetworkError: The client socket has timed out" not in said.stderr:
                yield f"bob as rank 1 of alice's training, from {place}: {said.stdout}{said.stderr[-2000:]}"
                first.kill()
                break
        else:
            second = world.as_user("alice", *on(job, nodes[1]), *rank(1, 90))
            output, errors = first.communicate(timeout=_TIMEOUT_S)
            if (second.stdout, output) != ("joined\n", "joined\n"):
                yield f"alice's own rank 1: {second.stdout}{second.stderr[-2000:]}{output}{errors[-2000:]}"
    world.as_user("bob", "scancel", own)


def _wait_for_port(node: str) -> None:
    """Wait until a program of a node listens. Raises RehearsalError if none does."""
    look = ["ip", "netns", "exec", node, "bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{_PORT}"]
    deadline = time.monotonic() + _TIMEOUT_S
    while subprocess.run(look, capture_output=True, check=False).returncode:
        if time.monotonic() > deadline:
            raise RehearsalError(f"no rank of alice's training listens on {node}")
        time.sleep(0.2)


def _say(text: str) -> None:
    print(f"  {text}", flush=True)
