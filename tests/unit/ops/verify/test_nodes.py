"""`trainctl verify --nodes`: jobs are submitted, judged, and cancelled after Ctrl-C."""

import os
import signal
from typing import Any

import pytest

from ops.account.head_node import HeadNode
from ops.jobs.request import JobRequest
from ops.jobs.settings import check_job_settings
from ops.jobs.slurm import Job
from ops.jobs.submit import Submitted, submit
from ops.report.record import Run, Summary, Use
from ops.verify import lustre, people
from ops.verify.check import Result
from ops.verify.node_jobs import JobSeen, run_job
from ops.verify.nodes import NODE_CHECKS, run_node_checks
from ops.verify.scene import Scene, open_scene
from ops.verify.workloads import NETWORK, Nodes, say_price, settings_of
from tests.unit.ops.jobs_head_node import PlayedCluster, job_line
from training_cluster.catalog.families import instance_hour

TRAINING = "gpt2"
GOOD = "2 ranks\nNCCL INFO via NET/Libfabric/0\nNET/OFI Selected provider is efa, fabric is efa\n"
GOOD += "all-reduce as it should be: 2 nodes, 16 ranks: 45 GB/s at 1 GiB\n"


UNSEEN = dict.fromkeys(
    ("scaled-down-later", *(each.id for each in (*lustre.CHECKS, *people.CHECKS))), "could not look"
)


def scene_of(cluster: PlayedCluster) -> Scene:
    said: list[str] = []
    return open_scene("training", cluster.client, said.append, nodes=2)


def job(state: str = "COMPLETED") -> Job:
    return Job(
        user="ubuntu",
        partition="gpu",
        elapsed="1:00",
        submitted=0.0,
        id="31",
        workload="gpt2",
        state=state,
        reason="",
        dependency="",
        exit_code=0,
        signal=0,
        nodes=2,
        restarts=0,
        time_limit="60",
        output="",
    )


def seen(text: str = GOOD, *, state: str = "COMPLETED", **more: Any) -> JobSeen:
    return JobSeen(
        **{"id": "31", "run": "gpt2/verify-1", "text": text, "began_s": 240.0, "ended": job(state), **more}
    )


def run(**summary: Any) -> Run:
    values = {"steps": 50, "world_size": 16, "first_loss": 10.8, "last_loss": 6.1, **summary}
    use = Use.model_construct(
        instance_type="p4d.24xlarge", node_s=1800.0, rehearsal=False, capacity="ondemand"
    )
    return Run.model_construct(
        summary=Summary.model_construct(**values), settings={"NPROC_PER_NODE": "8"}, use=[use]
    )


def results(
    cluster: PlayedCluster,
    monkeypatch: pytest.MonkeyPatch,
    *,
    network: JobSeen | None = None,
    training: JobSeen | None = None,
    record: Run | None = None,
    on_node: str = "cli-version: 1.20.0 of /lib/security/pam_slurm_adopt.so\nlib-version: 1.20.0\n",
) -> dict[str, Result]:
    cluster.says("srun", on_node)
    jobs = {NETWORK: network or seen(), TRAINING: training or seen("", was_stopped=True, state="CANCELLED")}
    monkeypatch.setattr("ops.verify.nodes.run_job", lambda workload, _scene, **_: jobs[workload])
    monkeypatch.setattr("ops.verify.nodes.read_on_cluster", lambda _run, _node: record or run())
    scene = scene_of(cluster)
    return {check.id: check.run(scene) for check in NODE_CHECKS}


def test_a_good_network_and_training_hold(cluster: PlayedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    found = results(cluster, monkeypatch)
    assert {name: each.verdict for name, each in found.items() if each.verdict != "held"} == UNSEEN
    assert "look again 20 minutes" in found["scaled-down-later"].seen
    assert found["node-start"].seen.startswith("4.0 minutes")


BAD_EFA = "via NET/Socket\njudge.py: EFA unused: NCCL goes through Socket, which costs most.\n  mend\n"
SLOW = f"{GOOD.partition('all-reduce')[0]}judge.py: too slow: 3 GB/s at 1 GiB; 2 nodes give 41 at least.\n"


def test_a_fault_of_the_nodes_is_seen(cluster: PlayedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for change, verdicts, said in (
        ({"network": seen(BAD_EFA)}, {"efa": "differs", "bandwidth": "differs"}, "EFA unused"),
        ({"network": seen(SLOW)}, {"bandwidth": "differs"}, "too slow: 3 GB/s"),
        ({"network": seen(GOOD.replace("Libfabric", "Socket"))}, {"efa": "differs"}, "NCCL over Socket"),
        ({"network": seen(GOOD.replace("is efa,", "is tcp,"))}, {"efa": "differs"}, "provider: tcp"),
        (
            {"network": seen("no all_reduce_perf here\n", state="FAILED")},
            {"efa": "could not look", "bandwidth": "could not look"},
            "was not judged: no all_reduce_perf here",
        ),
        ({"network": seen(began_s=1000.0)}, {"node-start": "differs"}, "16.7 minutes"),
        ({"network": seen(began_s=None)}, {"node-start": "differs"}, "wrote nothing: COMPLETED"),
        ({"training": seen("x", state="FAILED")}, {"training": "differs"}, "the job is FAILED"),
        (
            {"on_node": "missing\n"},
            {"gpu-containers": "differs", "ssh-needs-job": "differs"},
            "nvidia-container-cli: missing",
        ),
        (
            {"on_node": "one user\n"},
            {"gpu-containers": "differs", "ssh-needs-job": "could not look"},
            "neither users nor a directory",
        ),
        ({"record": run(steps=None)}, {"training": "differs"}, "no step"),
        ({"record": run(last_loss=11.0)}, {"training": "differs"}, "loss 10.80 to 11.00"),
        ({"record": run(world_size=8)}, {"world-size": "differs"}, "8 ranks of 16 on 2 nodes"),
        ({"record": run(world_size=None)}, {"world-size": "differs"}, "no world size"),
    ):
        found = results(cluster, monkeypatch, **change)
        assert {name: e.verdict for name, e in found.items() if e.verdict != "held"} == UNSEEN | verdicts
        assert any(said in each.seen for each in found.values())


def line(state: str) -> str:
    return job_line(state, id_="31", output="/fsx/runs/job-31.log")


def running(cluster: PlayedCluster, state: str) -> None:
    for workload in (NETWORK, TRAINING):
        cluster.has_workload(workload)
    cluster.says("sbatch", "31\n")
    cluster.says("squeue", line(state))
    cluster.has_log("31", "0: step 10: loss 5\n")


@pytest.mark.parametrize("state", ["COMPLETED", "DEADLINE"])
def test_a_job_is_watched_to_its_end(cluster: PlayedCluster, state: str) -> None:
    running(cluster, state)
    found = run_job(NETWORK, scene_of(cluster))
    assert found.text == "0: step 10: loss 5\n"
    assert found.began_s is not None
    assert found.ended is not None
    assert found.ended.state == state
    (sbatch,) = cluster.called("sbatch")
    assert {"--time=60", "--deadline=now+120minutes"} <= set(sbatch)
    assert cluster.called("scancel") == []


def test_a_training_that_was_long_enough_is_cancelled(cluster: PlayedCluster) -> None:
    running(cluster, "RUNNING")
    ended = cluster.shared.parent / "ended"
    cluster.does("scancel", f"touch {ended}")
    states = (line("CANCELLED"), line("RUNNING"))
    cluster.does("squeue", f"if [[ -e {ended} ]]; then say ${states[0]!r}; else say ${states[1]!r}; fi")
    found = run_job(TRAINING, scene_of(cluster), most_trained_s=0.05)
    assert found.was_stopped
    assert cluster.called("scancel") == [["scancel", "31"]]


def test_ctrl_c_cancels_the_job(cluster: PlayedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    running(cluster, "RUNNING")
    cluster.says("scancel", "")

    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ops.verify.node_jobs.follow", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_job(TRAINING, scene_of(cluster))
    assert cluster.called("scancel") == [["scancel", "31"]]


def test_ctrl_c_during_sbatch_cancels_job(cluster: PlayedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    running(cluster, "RUNNING")
    cluster.says("scancel", "")

    def interrupted(request: JobRequest, head_node: HeadNode) -> Submitted:
        os.kill(os.getpid(), signal.SIGINT)
        return submit(request, head_node)

    monkeypatch.setattr("ops.verify.node_jobs.submit", interrupted)
    scene = scene_of(cluster)
    with pytest.raises(KeyboardInterrupt):
        run_job(TRAINING, scene)
    assert (cluster.called("scancel"), [job_id for job_id, _ in scene.jobs]) == ([["scancel", "31"]], ["31"])


def test_trainium_runs_its_own_workload_without_nccl(
    cluster: PlayedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.has_nodes("trn1.32xlarge", recipe="neuron")
    cluster.says("srun", "/lib/security/pam_slurm_adopt.so\n")
    asked = list[str]()

    def play(workload: str, _scene: Scene, **_: Any) -> JobSeen:
        asked.append(workload)
        return seen("", was_stopped=True, state="CANCELLED")

    monkeypatch.setattr("ops.verify.nodes.run_job", play)
    monkeypatch.setattr("ops.verify.nodes.read_on_cluster", lambda _run, _node: run())
    scene = scene_of(cluster)
    found = {check.id: check.run(scene) for check in NODE_CHECKS}
    assert asked == ["bert-trainium"]
    assert {name for name, each in found.items() if each.verdict == "could not look"} == {
        "efa",
        "bandwidth",
        "gpu-containers",
        *UNSEEN,
    }
    assert "nccom-test" in found["efa"].seen
    assert found["node-start"].seen.startswith("4.0 minutes")


def test_drained_nodes_and_braked_checks_are_seen(
    cluster: PlayedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_hand = "gpu-dy-p4d-1     maintenance          (null)\n"
    reason = "training-cluster: CUDA does not start: cuInit fails with CUDA error 802"
    braked = "training-cluster: braked at 2026-11-24 07:00:00, idle: nvidia-smi lists 7 of 8 GPUs"
    cluster.says(
        "sinfo", f"{by_hand}gpu-dy-p4d-2     {reason}     (null)\ngpu-dy-p4d-[3-4]  none  {braked}\n"
    )
    monkeypatch.setattr("ops.verify.nodes._network_job", lambda _scene: seen())
    monkeypatch.setattr(
        "ops.verify.nodes.nodes_of", lambda _scene: Nodes(family="p4d", instance_type="x", recipe="gpu")
    )
    (check,) = [each for each in NODE_CHECKS if each.id == "node-health"]
    found = check.run(scene_of(cluster))
    assert (found.verdict, found.seen) == (
        "differs",
        f"gpu-dy-p4d-2 {reason} (null); gpu-dy-p4d-[3-4] none {braked}",
    )


@pytest.mark.parametrize(("workload", "kind"), [("gpt2", "gpu"), ("bert-trainium", "neuron")])
def test_a_training_takes_node_text_and_known_settings(
    cluster: PlayedCluster, workload: str, kind: str
) -> None:
    running(cluster, "COMPLETED")
    cluster.has_nodes("p4d.24xlarge", recipe="gpu", ACCELERATOR_KIND=kind)
    (cluster.shared / "training" / "bert-trainium").mkdir()
    (cluster.shared / "training" / "bert-trainium" / "train.sh").touch()
    cluster.does("sbatch", 'echo "$CORPUS" >"$TRAINING_SHARED/corpus"; echo 31')
    run_job(workload, scene_of(cluster))
    assert (cluster.shared / "corpus").read_text() == "machine\n"
    assert check_job_settings(workload, settings_of(workload), ()) == ""


def test_the_price_is_said_before_the_first_job(cluster: PlayedCluster) -> None:
    said: list[str] = []
    scene = open_scene("training", cluster.client, said.append, nodes=2)
    say_price(scene, ())
    price = instance_hour("p4d.24xlarge")
    assert price is not None
    usd = price.usd * 2 * 140 / 60
    assert said == [
        f"2 x p4d.24xlarge for nccl-tests and gpt2: {usd:.2f} USD on demand at most, if each job runs "
        "for its 60 minutes, and 20 idle ones follow. Ctrl-C ends them"
    ]


def test_a_cluster_without_node_facts_gets_no_job(cluster: PlayedCluster) -> None:
    (cluster.shared.parent / "etc" / "partitions" / "gpu.env").unlink()
    found = run_node_checks(scene_of(cluster))
    assert {each.verdict for each in found} == {"could not look"}
    assert all(each[0] != "sbatch" for each in cluster.calls)


OWN = "/dev/root[/var/lib/training-cluster/jobs/7/.7/_tmp], GPUs that it opens: "
QUEUE = {"Name": "open", "ComputeResources": [{"InstanceType": "p5.48xlarge"}]}


@pytest.mark.parametrize(
    ("exclusive", "answer", "verdict"),
    [
        ("YES", "", "could not look"),
        ("NO", f"{OWN}1\n", "held"),
        ("NO", f"{OWN}8\n", "differs"),
        ("NO", "/dev/root, GPUs that it opens: 1\n", "differs"),
    ],
)
def test_a_node_that_keeps_nobody_apart_is_seen(
    cluster: PlayedCluster, monkeypatch: pytest.MonkeyPatch, *, exclusive: str, answer: str, verdict: str
) -> None:
    config = {"Scheduling": {"SlurmQueues": [QUEUE | {"CustomSlurmSettings": {"ExclusiveUser": exclusive}}]}}
    monkeypatch.setattr("ops.verify.scene.read_cluster_config", lambda _name, _client: config)
    cluster.says("srun", answer)
    assert [check.run(scene_of(cluster)).verdict for check in people.CHECKS] == [verdict]
