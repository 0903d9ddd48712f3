"""`trainctl submit`, `jobs`, `logs` and `cancel`: what they send, what they say, how they end."""

import getpass
import json
import shlex
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.unit.ops.fake_account import Refused
from tests.unit.ops.jobs_head_node import HEAD_NODE, SINFO, UNKNOWN_JOB, Call, PlayedCluster, job_line, stack
from tests.unit.ops.plan.test_plan import deployed
from training_cluster.stack_names import DEFAULT_CLUSTER


def test_a_workload_is_submitted_as_requested(cluster: PlayedCluster, call: Call) -> None:
    cluster.has_workload("gpt2")
    seen = cluster.shared / "seen"
    cluster.does("sbatch", f'printf "%s\\n" "$RUN_NAME" "$NOTE" >{seen}; echo 31')
    cluster.says("squeue", job_line("RUNNING"))
    asked = "submit gpt2 --nodes 2 --partition gpu --name my-run --after 30 --time 1:00:00".split()
    code, said, _ = call(*asked, "--env", "NOTE=a 'b' $c", "--", "--seed", "1")
    assert code == 0
    (command,) = cluster.called("sbatch")
    (token,) = [each for each in command if each.startswith("--comment=trainctl-")]
    assert command == [
        *("sbatch", "--parsable", "--nodes=2", "--job-name=gpt2", "--partition=gpu"),
        *("--dependency=afterok:30", "--time=1:00:00", f"--output={cluster.shared}/runs/job-%j.log", token),
        *(f"{cluster.shared}/training/job.slurm", "gpt2", "--seed", "1"),
    ]
    assert seen.read_text() == "my-run\na 'b' $c\n"
    for next_ in ("trainctl logs 31 --follow", "trainctl jobs", "trainctl cancel 31", "trainctl report 31"):
        assert next_ in said


def test_output_is_written_to_the_user_folder(cluster: PlayedCluster, call: Call) -> None:
    cluster.has_workload("gpt2")
    cluster.does("sbatch", "echo 31")
    cluster.says("squeue", job_line("RUNNING"))
    own = cluster.shared / "users" / getpass.getuser()
    own.mkdir(parents=True)
    assert call("submit", "gpt2", "--nodes", "2")[0] == 0
    output = own / "logs" / "job-%j.log"
    assert f"--output={output}" in cluster.called("sbatch")[0]
    output.with_name("job-31.log").write_text("step 1\n")
    cluster.says("squeue", "", error=UNKNOWN_JOB, code=1)
    assert call("logs", "31")[:2] == (0, "step 1\n")


def test_a_strangers_user_folder_is_refused(cluster: PlayedCluster, call: Call) -> None:
    cluster.has_workload("gpt2")
    cluster.does("sbatch", "echo 31")
    own = cluster.shared / "users" / getpass.getuser()
    own.parent.mkdir()
    own.symlink_to(cluster.shared)
    code, _, said = call("submit", "gpt2", "--nodes", "2")
    assert (code, f"users/{own.name} belongs to somebody else" in said, cluster.called("sbatch")) == (
        1,
        True,
        [],
    )


def slurm_with_a_queue(cluster: PlayedCluster, *, before: str = "", slow: str = "") -> None:
    """Play an sbatch that does `before`, puts its comment in the queue, and is `slow` the first time."""
    queue = cluster.shared.parent / "queue"
    cluster.does("squeue", f"cat {queue} 2>/dev/null; true")
    cluster.does(
        "sbatch",
        f"{before or ':'}\n"
        f'for word; do case $word in --comment=*) echo "${{word#*=}} 31" >>{queue};; esac; done\n'
        f"if (($(wc -l <{queue}) == 1)); then {slow or ':'}; fi; echo 31",
    )


@pytest.mark.slow
def test_a_lost_answer_submits_one_job(
    cluster: PlayedCluster, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.jobs.submit.LIMIT_S", 3)
    cluster.has_workload("gpt2")
    slurm_with_a_queue(cluster, slow="sleep 20")
    code, said, _ = call("submit", "gpt2", "--nodes", "1")
    assert (code, said.splitlines()[0], len(cluster.called("sbatch"))) == (0, "Job 31: gpt2 on 1 node(s)", 1)


@pytest.mark.slow
def test_simultaneous_equal_requests_are_one_job(cluster: PlayedCluster) -> None:
    cluster.has_workload("gpt2")
    # Long enough for every caller to ask for the queue before the first job is in it.
    slurm_with_a_queue(cluster, before="sleep 1")
    command = ("trainctl-1", "sbatch", "--comment=trainctl-1")
    head_node = cluster.head_node
    with ThreadPoolExecutor() as pool:
        said = [pool.submit(head_node.run_script, "submit-once.sh", *command) for _ in range(3)]
        assert [each.result().strip() for each in said] == ["31"] * 3
    assert len(cluster.called("sbatch")) == 1


@pytest.mark.slow
def test_a_silent_slurm_has_not_refused(
    cluster: PlayedCluster, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.jobs.submit.LIMIT_S", 1)
    cluster.has_workload("gpt2")
    cluster.does("sbatch", "sleep 20")
    code, _, said = call("submit", "gpt2", "--nodes", "1")
    assert code == 1
    assert "Slurm may have accepted the job, once at most" in said
    assert "type:   trainctl jobs, and submit it again only if the list lacks it" in said


def test_submit_as_json_has_the_job(cluster: PlayedCluster, call: Call) -> None:
    cluster.has_workload("gpt2")
    cluster.says("sbatch", "31;training\n")
    code, said, _ = call("submit", "gpt2", "--nodes", "1", "--json")
    told = json.loads(said)
    assert (code, told["job_id"], told["notes"]) == (0, "31", [])
    assert told["command"].endswith("/fsx/training/job.slurm gpt2")


def test_a_dry_run_checks_and_prints_its_command(cluster: PlayedCluster, call: Call) -> None:
    cluster.has_workload("gpt2")
    nodes = ("--nodes", "2-3", "--spares", "1", "--set", "GLOBAL_BATCH=576")
    asked = ("submit", "gpt2", "--dry-run", *nodes, "--set", "MAX_STEPS=5")
    code, said, complaint = call(*asked, "--", "--seed", "1")
    assert (code, complaint) == (0, "")
    assert said == (
        "env GLOBAL_BATCH=576 MAX_STEPS=5 SPARES=1 MIN_NODES=2 sbatch --parsable --nodes=2-4 --job-name=gpt2 "
        "--output=/fsx/runs/job-%j.log /fsx/training/job.slurm gpt2 --seed 1\n"
    )
    code, said, _ = call(*asked, "--json")
    assert (code, json.loads(said)["notes"]) == (0, [])
    code, _, complaint = call(*asked[:-1], "INIT_FROM=/fsx/none")
    assert (code, "there is no such path" in complaint) == (1, True)
    assert not cluster.called("sbatch")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("gtp2",), 1, 'Did you mean "gpt2"?'),
        (("trainkit",), 1, "allowed: gpt2, roberta"),
        (("../gpt2",), 1, "allowed: gpt2, roberta"),
        (("gpt2", "--nodes", "5"), 1, "allowed: 1 to 4\n  type:    --nodes 4, or trainctl deploy"),
        (("gpt2", "--nodes", "9"), 1, f"deploy --cluster {DEFAULT_CLUSTER} -c nodes=9\n"),
        (("gpt2", "--nodes", "3-2"), 2, "or --nodes 2-4"),
        (("gpt2", "--nodes", "2-3"), 2, "a job on a range of nodes (MIN_NODES) needs GLOBAL_BATCH"),
        (("gpt2", "--nodes", "3", "--spares", "2"), 1, "5 nodes, 2 of them spare"),
        (("gpt2", "--spares", "1", "--set", "SPARES=2"), 2, "--spares 1 and --set SPARES=2: give one"),
        (("gpt2", "--partition", "gpus"), 1, 'Did you mean "gpu"?'),
        (("gpt2", "--after", "7"), 1, "does not know job 7"),
        (("gpt2", "--set", "INIT_FROM=../mine"), 2, "type:    the whole path, such as /fsx/checkpoints/NAME"),
        (("gpt2", "--set", "INIT_FROM=/fsx/none"), 1, "--set INIT_FROM=/fsx/none: there is no such path"),
    ],
)
def test_what_cannot_run_is_not_submitted(
    arguments: tuple[str, ...], code: int, said: str, cluster: PlayedCluster, call: Call
) -> None:
    for name in ("gpt2", "roberta"):
        cluster.has_workload(name)
    (cluster.shared / "training" / "trainkit").mkdir()
    cluster.says("squeue", "", error=UNKNOWN_JOB, code=1)
    nodes = () if "--nodes" in arguments else ("--nodes", "2")
    ended, out, err = call("submit", *arguments, *nodes)
    assert (ended, out) == (code, "")
    assert said in err
    assert not cluster.called("sbatch")


def test_mail_without_an_address_is_refused(cluster: PlayedCluster, call: Call) -> None:
    cluster.has_workload("gpt2")
    cluster.says("sbatch", "7\n")
    asked = ("submit", "gpt2", "--nodes", "1", "--notify", "mail")
    cluster.account.answers["GetTemplate"] = deployed(family="p5").answers["GetTemplate"]
    code, _, said = call(*asked)
    assert (code, cluster.called("sbatch")) == (1, [])
    assert "no address for mail of jobs" in said
    assert f"type:   trainctl deploy --cluster {DEFAULT_CLUSTER} -c job_emails=USER=ADDRESS\n" in said
    mailed = deployed(family="p5", job_emails="team@example.com")
    cluster.account.answers["GetTemplate"] = mailed.answers["GetTemplate"]
    assert call(*asked)[0] == 0


def test_a_budget_demands_a_time_limit(cluster: PlayedCluster, call: Call) -> None:
    cluster.has_workload("gpt2")
    (cluster.shared.parent / "etc" / "budgets").write_text("nlp 500 alice bob\nlow 5\n")
    cluster.says("sbatch", "31\n")
    asked = ("submit", "gpt2", "--nodes", "1")
    for user, kind, more, code in (
        ("alice", "gpu", (), 2),
        ("alice", "gpu", ("--time", "60"), 0),
        ("alice", "none", (), 0),
        ("carol", "gpu", (), 0),
        ("carol", "gpu", ("--env", "SBATCH_ACCOUNT=low"), 2),
    ):
        cluster.says("id", f"{user}\n")
        cluster.has_nodes("p4d.24xlarge", recipe="gpu", ACCELERATOR_KIND=kind)
        ended, _, said = call(*asked, *more)
        assert (ended, "has a budget of GPU hours" in said) == (code, code == 2), (user, kind, more, said)
    assert len(cluster.called("sbatch")) == 3


def test_an_image_of_ecr_must_exist(cluster: PlayedCluster, call: Call) -> None:
    cluster.has_workload("gpt2")
    cluster.says("sbatch", "7\n")
    image = "123456789012.dkr.ecr.us-east-1.amazonaws.com/team/mine:1"
    asked = ("submit", "gpt2", "--nodes", "1", "--container", image)
    for answer, code in (
        (Refused("ImageNotFoundException"), 1),
        (Refused("AccessDeniedException"), 0),
        ({}, 0),
    ):
        cluster.account.answers["DescribeImages"] = answer
        assert call(*asked)[0] == code
    assert len(cluster.called("sbatch")) == 2


def test_a_folder_of_weights_must_exist(cluster: PlayedCluster, call: Call) -> None:
    cluster.has_workload("gpt2")
    cluster.says("sbatch", "7\n")
    (cluster.shared / "mine").mkdir()
    there, container = ("--set", "INIT_FROM=/fsx/mine"), ("--set", "INIT_FROM=/weights", "--container", "a/b")
    for arguments in (there, container):
        code, _, said = call("submit", "gpt2", "--nodes", "1", *arguments)
        assert (code, said) == (0, "")


def test_a_model_too_large_for_nodes_is_refused(cluster: PlayedCluster, call: Call) -> None:
    cluster.has_workload("titan")
    facts = {"ACCELERATOR_KIND": "gpu", "ACCELERATOR_MEMORY_GIB": "40.0", "RANKS_PER_NODE": "8"}
    cluster.has_nodes("p4d.24xlarge", recipe="gpu", **facts)
    code, _, said = call("submit", "titan", "--nodes", "1", "--set", "SIZE=70B")
    assert code == 2
    assert "titan would refuse to run on 1 x p4d.24xlarge: llama3 70B does not fit: " in said
    assert not cluster.called("sbatch")


def test_a_refusal_is_told_in_slurms_own_words(cluster: PlayedCluster, call: Call) -> None:
    cluster.has_workload("gpt2")
    cluster.says("sbatch", "", error="sbatch: error: Job violates the account's limits", code=1)
    code, _, said = call("submit", "gpt2", "--nodes", "1", "--set", "MAX_STEPS=1")
    assert code == 1
    assert said.startswith("Slurm refused the job: sbatch: error: Job violates the account's limits\n")


def test_a_partition_that_starts_nothing_is_told(cluster: PlayedCluster, call: Call) -> None:
    cluster.has_workload("gpt2")
    cluster.says("sbatch", "31\n")
    cluster.says("sinfo", "gpu*|inact|idle~|4|gpu-dy-p4d-[1-4]|Unknown|none\n")
    code, said, _ = call("submit", "gpt2", "--nodes", "1")
    assert code == 0
    assert "starts no jobs now (inact)" in said


def test_the_end_of_a_capacity_block_is_told(cluster: PlayedCluster, call: Call) -> None:
    cluster.has_workload("gpt2")
    cluster.says("sbatch", "31\n")
    ends = (
        "training-cluster-cr-1  INACTIVE  2026-12-01T10:45:00  2026-12-01T11:30:00  00:45:00  {}-st-p5-[1-2]"
    )
    ends = "\n".join(map(ends.format, ("gpu", "other")))
    cluster.does("sinfo", f"case $* in *--reservation*) echo '{ends}' ;; *) say {shlex.quote(SINFO)} ;; esac")
    code, said, _ = call("submit", "gpt2", "--nodes", "1")
    assert (code, said.count("cr-1 ends: its nodes are free until 2026-12-01T10:45:00")) == (0, 1)


QUEUE = job_line("PENDING", "Resources", id_="33") + job_line(id_="31")


def test_the_queue_says_why_a_job_waits(cluster: PlayedCluster, call: Call) -> None:
    cluster.says("squeue", QUEUE)
    code, said, _ = call("jobs")
    assert code == 0
    lines = said.splitlines()
    assert [line.split()[0] for line in lines] == ["job", "31", "33"]
    assert lines[2].endswith("no nodes are free for it yet")
    assert "--states=all" not in cluster.calls[-1]


def test_ended_jobs_come_from_slurm_and_accounting(cluster: PlayedCluster, call: Call) -> None:
    cluster.says("squeue", QUEUE + job_line("FAILED", "NonZeroExitCode", id_="29"))
    cluster.says(
        "sacct",
        "29|gpu|ubuntu|FAILED|None|1|0:01|UNLIMITED|roberta\n28|gpu|ubuntu|TIMEOUT|None|1|0:01|1:00|gpt2\n",
    )
    code, said, _ = call("jobs", "--all", "--json")
    told = json.loads(said)
    assert (code, told["notes"], [job["id"] for job in told["queue"]]) == (0, [], ["31", "33"])
    assert [(job["id"], job["state"]) for job in told["ended"]] == [("29", "FAILED"), ("28", "TIMEOUT")]
    said = call("jobs", "--all", "--cluster", "b")[1]
    assert "its script failed: trainctl logs 29 --cluster b" in said


def test_without_accounts_it_says_that_slurm_forgets(cluster: PlayedCluster, call: Call) -> None:
    cluster.says("sacct", "", error="Slurm accounting storage is disabled", code=1)
    code, said, _ = call("jobs", "--all")
    assert code == 0
    assert said.startswith("No job is waiting or running.\nSlurm lists no ended job.\n")
    assert "Slurm accounting storage is disabled" in said


def test_what_to_type_next_names_another_cluster(cluster: PlayedCluster, call: Call) -> None:
    own = stack("TrainingClusterStack-b", HeadNodeInstanceId=HEAD_NODE)
    cluster.account.answers["DescribeStacks"] = {"Stacks": [own]}
    cluster.has_workload("gpt2")
    cluster.says("sbatch", "30\n")
    cluster.says("squeue", job_line("RUNNING", "None"))
    cluster.says("scancel", "")
    said = (
        call("submit", "gpt2", "--nodes", "1", "--cluster", "b")[1]
        + call("cancel", "30", "--cluster", "b")[1]
    )
    typed = [line for line in said.splitlines() if line.startswith("  trainctl")]
    assert len(typed) == 5
    assert all(" --cluster b" in line for line in typed)


def test_cancel_says_what_becomes_of_each_job(cluster: PlayedCluster, call: Call) -> None:
    texts = {
        "30": job_line(),
        "31": job_line("COMPLETED", id_="31"),
        "33": job_line("PENDING", "Resources", id_="33", restarts=0),
    }
    cases = "".join(f"--jobs={id_}) say ${text!r};;" for id_, text in texts.items())
    cluster.does("squeue", f'case "${{@: -1}}" in {cases} *) echo "{UNKNOWN_JOB}" >&2; exit 1;; esac')
    cluster.says("scancel", "")
    code, said, refused = call("cancel", "31", "32", "33", "30")
    assert code == 1
    assert refused.splitlines() == [
        "Job 31 has ended already: COMPLETED.",
        "Slurm does not know the job 32 (any more).",
    ]
    first, second, *_, resume = said.splitlines()
    assert first == "Job 33 (gpt2) is cancelled; it had not begun."
    assert second.startswith("Job 30 (gpt2) is cancelled: its training gets SIGTERM, and up to 10 minutes")
    assert resume == "  trainctl submit gpt2 --nodes 2 --name job-30"
    assert cluster.called("scancel") == [["scancel", "33"], ["scancel", "30"]]


def test_without_a_head_node_every_command_says_so(cluster: PlayedCluster, call: Call) -> None:
    cluster.account.answers["DescribeStacks"] = {
        "Stacks": [stack("TrainingClusterStack", status="CREATE_IN_PROGRESS")]
    }
    for command in (("submit", "gpt2", "--nodes", "1"), ("jobs",), ("logs", "1"), ("cancel", "1")):
        code, out, said = call(*command)
        assert (code, out) == (1, "")
        assert "has no head node yet: TrainingClusterStack is CREATE_IN_PROGRESS" in said
