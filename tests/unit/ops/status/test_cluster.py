"""`trainctl status` of a deployed cluster: each part alone."""

import datetime
import json
from dataclasses import replace
from typing import Any

import pytest

from ops.status.cluster import ClusterState, Fill, read_cluster_state, read_deployed, render_cluster_state
from tests.unit.ops.fake_account import Refused
from tests.unit.ops.jobs_head_node import HEAD_NODE, Call, PlayedCluster, stack
from training_cluster.stack_names import DEFAULT_CLUSTER

FLEET = {"Item": {"Id": {"S": "COMPUTE_FLEET"}, "Data": {"M": {"status": {"S": "RUNNING"}}}}}
SINFO = """\
gpu*|up|idle~|3|gpu-dy-p4d-[1-3]|Unknown|none
gpu*|up|mixed|1|gpu-dy-p4d-4|Unknown|none
gpu*|up|drained|1|gpu-dy-p4d-5|1790000000|gpu lost: XID 79
"""


def instances(state: str) -> dict[str, Any]:
    return {"Reservations": [{"Instances": [{"InstanceId": HEAD_NODE, "State": {"Name": state}}]}]}


@pytest.fixture
def standing(cluster: PlayedCluster) -> PlayedCluster:
    cluster.account.answers |= {
        "DescribeInstances": instances("running"),
        "dynamodb.GetItem": FLEET,
        "ssm.GetParameter": Refused("ParameterNotFound"),
    }
    cluster.says("sinfo", SINFO)
    cluster.says("squeue", "RUNNING\nCONFIGURING\nPENDING\n")
    return cluster


def look(standing: PlayedCluster) -> ClusterState:
    found = read_deployed(DEFAULT_CLUSTER, standing.client)
    assert found
    return found


def shown(state: ClusterState) -> str:
    return "\n".join(render_cluster_state(state))


def test_every_part_is_shown(standing: PlayedCluster) -> None:
    state = look(standing)
    assert (state.head_node, state.fleet, state.running_jobs, state.waiting_jobs) == (
        "running",
        "RUNNING",
        2,
        1,
    )
    assert [fill.mount for fill in state.storage] == ["/fsx", "/efs", "/home"]
    assert all(0 < fill.used < fill.size for fill in state.storage)
    assert state.unanswered == ()
    said = shown(state)
    for words in (
        f"head node      running, {HEAD_NODE}",
        "compute fleet  RUNNING: nodes start when jobs need them",
        "jobs           2 running, 1 waiting (trainctl jobs shows why they wait)",
        f"gpu-dy-p4d-5 drained since {datetime.datetime.fromtimestamp(1790000000)}: gpu lost: XID 79",
    ):
        assert words in said
    head, counts = (line for line in said.splitlines() if line.startswith(("partition ", "gpu ")))
    at = {name: head.index(name) for name in ("allocated", "idle", "powered down")}
    assert {name: counts[column:].split()[0] for name, column in at.items()} == {
        "allocated": "1",
        "idle": "0",
        "powered down": "3",
    }
    assert counts.split()[-1] == "1", "down"


def test_a_running_job_over_tcp_is_a_warning(standing: PlayedCluster) -> None:
    standing.does(
        "squeue", 'case "$*" in *%A*) printf "17\\n18\\n" ;; *) printf "RUNNING\\nRUNNING\\n" ;; esac'
    )
    complaint = "NCCL sends over TCP (NET/Socket) on gpu-dy-p4d-1"
    for run, owner, said in (
        ("gpt2/job-17", "17", complaint),
        ("gpt2/job-18", "18", ""),
        ("gpt2/job-3", "3", complaint),
        ("titan/odd", "17\n", f"\\u001b]0;pwned {complaint}"),
    ):
        folder = standing.shared / "runs" / run
        folder.mkdir(parents=True)
        (folder / "owner").write_text(owner)
        (folder / "network.json").write_text(f'{{"transports": ["Socket"], "complaint": "{said}"}}\n')
    (standing.shared / "runs" / "gpt2" / "job-19").mkdir()
    state = look(standing)
    assert state.unanswered == ()
    first, second = state.complaints
    assert first == f"17 gpt2/job-17: {complaint}"
    assert second.startswith("17 titan/odd: ")
    assert "\x1b" not in second
    assert f"  WARNING job 17 gpt2/job-17: {complaint}\n" in shown(state)


@pytest.mark.parametrize(
    ("operation", "answer", "part", "why"),
    [
        ("DescribeInstances", Refused("UnauthorizedOperation", "no"), "head node", "may not do that"),
        ("DescribeInstances", {"Reservations": []}, "head node", "EC2 has no instance"),
        (
            "dynamodb.GetItem",
            Refused("ResourceNotFoundException"),
            "compute fleet",
            "no table parallelcluster-t",
        ),
        ("dynamodb.GetItem", {}, "compute fleet", "has no status of the cluster yet"),
        ("dynamodb.GetItem", Refused("AccessDeniedException", "no"), "compute fleet", "may not do that"),
    ],
)
def test_a_part_without_answer_hides_no_other(
    operation: str, answer: Any, part: str, why: str, standing: PlayedCluster
) -> None:
    standing.account.answers[operation] = answer
    state = look(standing)
    (line,) = state.unanswered
    assert line.startswith(f"{part}: ")
    assert why in line
    assert f"not known: {line}" in shown(state)
    assert state.partitions
    assert state.storage
    assert (state.head_node is None, state.fleet is None) == (part == "head node", part == "compute fleet")


def test_an_unreachable_head_node_is_reported_once(standing: PlayedCluster) -> None:
    standing.account.answers["SendCommand"] = Refused("InvalidInstanceId")
    standing.account.answers["DescribeInstances"] = instances("stopped")
    state = look(standing)
    (line,) = state.unanswered
    assert line.startswith("partitions, jobs, storage: The head node")
    assert "does not answer Systems Manager" in line
    assert (state.head_node, state.fleet, state.partitions) == ("stopped", "RUNNING", None)


def test_each_question_of_the_head_node_fails_alone(standing: PlayedCluster) -> None:
    runs = "/fsx/runs: no answer within 10 s"
    standing.does("squeue", f'printf "RUNNING\\nPENDING\\n{runs}\\n"')
    standing.says("sinfo", "", error="slurm_load_partitions: no contact", code=1)
    standing.environment["TRAINING_EFS"] = "/no/such/folder"
    state = look(standing)
    assert (state.running_jobs, state.waiting_jobs, state.complaints) == (1, 1, ())
    assert [fill.mount for fill in state.storage] == ["/fsx", "/home"]
    sinfo, unread, efs = state.unanswered
    assert (sinfo, unread) == ("partitions: sinfo: slurm_load_partitions: no contact", runs)
    assert efs.startswith("/efs: df: ")


@pytest.mark.slow
def test_hanging_file_system_hides_nothing(standing: PlayedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ops.status.cluster._FILL_S", 3)
    hung, over = f"*{standing.shared}", standing.shared.parent / "over"
    # Nobody can kill it: 20 seconds, or until the test is over.
    standing.does(
        "df",
        f"trap '' TERM; case \"$*\" in {hung})\n"
        f"for _ in {{1..200}}; do [[ ! -e {over} ]] || exit; sleep 0.1; done;; esac\necho 100 90",
    )
    looks = [look(standing) for _ in range(2)]
    over.touch()
    for state in looks:
        assert state.unanswered == ("/fsx: no answer within 3 s",)
        assert [fill.mount for fill in state.storage] == ["/efs", "/home"]
        assert (state.running_jobs, state.head_node) == (2, "running")
    asked = [each[-1] for each in standing.calls if each[0] == "df"]
    assert asked.count(str(standing.shared)) == 1, "one df hangs there already"
    assert len(standing.sent) == 3 * len(looks)


@pytest.mark.parametrize("status", ["STOPPED", "PROTECTED"])
def test_a_stopped_fleet_names_the_starting_command(status: str, standing: PlayedCluster) -> None:
    standing.account.answers["dynamodb.GetItem"] = {"Item": {"Data": {"M": {"status": {"S": status}}}}}
    said = shown(look(standing))
    assert f"compute fleet  {status}: " in said
    assert f"pcluster update-compute-fleet --cluster-name {DEFAULT_CLUSTER} --status START_REQUESTED" in said


def test_storage_that_is_nearly_full_says_so(standing: PlayedCluster) -> None:
    state = read_cluster_state(DEFAULT_CLUSTER, HEAD_NODE, standing.client)
    for used, words in ((89, "used"), (90, "used  nearly full")):
        fill = Fill(mount="/fsx", size=100 * 2**30, used=used * 2**30)
        lines = shown(replace(state, storage=(fill,))).splitlines()
        assert f"/fsx           {used}% of 100 GiB {words}" in lines


def test_without_a_head_node_nothing_is_asked(standing: PlayedCluster) -> None:
    young = stack("TrainingClusterStack", status="CREATE_IN_PROGRESS")
    standing.account.answers["DescribeStacks"] = {"Stacks": [young]}
    assert read_deployed(DEFAULT_CLUSTER, standing.client) is None
    assert standing.account.asked == ["DescribeStacks"]


def test_the_command_shows_the_deploy_and_the_cluster(standing: PlayedCluster, call: Call) -> None:
    code, said, _ = call("status")
    assert code == 0
    assert said.index("TrainingClusterStack  CREATE_COMPLETE") < said.index("head node      running")
    told = json.loads(call("status", "--json")[1])
    assert told["stacks"] == [["TrainingClusterStack", "CREATE_COMPLETE"]]
    assert (told["progress"], told["other_clusters"]) == (None, [])
    assert told["cluster"]["partitions"][0]["nodes"]["powered_down"] == 3
    assert told["cluster"]["unavailable"][0]["reason"] == "gpu lost: XID 79"


@pytest.mark.parametrize("extra", [(), ("--json",)])
def test_exit_code_without_a_cluster_tells_of_deploys(
    standing: PlayedCluster, call: Call, extra: tuple[str, ...]
) -> None:
    standing.account.answers["GetParameter"] = Refused("ParameterNotFound")
    network, other = "TrainingCluster-Network", "TrainingClusterStack-other"
    for stacks, code in (
        ({network: "CREATE_IN_PROGRESS"}, 0),
        ({network: "CREATE_COMPLETE"}, 0),  # the next stack of a first deploy has not begun
        ({network: "ROLLBACK_COMPLETE"}, 1),
        ({network: "CREATE_COMPLETE", "nosuch": "CREATE_COMPLETE"}, 1),
        ({network: "CREATE_COMPLETE", other: "CREATE_COMPLETE"}, 1),
        ({}, 1),
    ):
        standing.account.answers["DescribeStacks"] = {
            "Stacks": [stack(name, status=status) for name, status in stacks.items()]
        }
        assert call("status", "--cluster", "nosuch", *extra)[0] == code, stacks
