"""`trainctl verify --gpu`: four jobs on one GPU node, against recorded figures of its family."""

from typing import Any

import pytest

from ops.jobs.settings import check_job_settings
from ops.report.record import Run, Summary
from ops.usage import UsageError
from ops.verify.check import Result
from ops.verify.gpu import GPU_CHECKS, JOBS, PRODUCT, TITAN, TOO_LARGE, WORKLOADS, GpuJob, on_gpu_node
from ops.verify.node_jobs import JobSeen
from ops.verify.nodes import run_node_checks
from ops.verify.scene import Scene, open_scene
from tests.unit.ops.jobs_head_node import Call, PlayedCluster, job_line
from training_cluster.paths import TRAINING

# product.py's line about the H100 of tests/unit/assets/bootstrap/metrics, with the label of srun.
DEVICE = (
    "0: device 0 of gpu-dy-p5-1: 778 TFLOP/s, 79% of the peak; NVIDIA H100 80GB HBM3, driver 580.159.04, "
    "SM 1980 of 1980 MHz, 38 C, 127.69 W, PCIe 5 x16 of 5 x16\n"
)
SLOWED = (
    f"{DEVICE}product.py: device 0 of gpu-dy-p5-1 is slowed while it works: hw_thermal_slowdown\n  Replace\n"
)
SENTENCE = (
    "train.py on gpu-dy-p5-1, rank 0: the GPU has too little memory for a step with BATCH_SIZE=16384 and "
    "GPT2_CONTEXT=1024: torch took 70.1 of 79.2 GiB (CUDA out of memory. Tried to allocate 48.00 GiB): give "
    "BATCH_SIZE=8192 GRADIENT_ACCUMULATION=2, which make the same step."
)
ENDED = (
    f"0: {SENTENCE}\n05:10:11 job.slurm: the training failed ({SENTENCE}); not started again, since "
    "MAX_RESTARTS is 0\n"
)
SPEEDS = {"mfu": 0.77, "tokens_per_s": 280_000.0, "first_loss": 11.0, "last_loss": 6.4}


@pytest.fixture
def p5(cluster: PlayedCluster, monkeypatch: pytest.MonkeyPatch) -> PlayedCluster:
    """A cluster whose nodes have H100s."""
    deploys(monkeypatch, "ubuntu2404")
    cluster.has_nodes("p5.4xlarge", recipe="gpu", ACCELERATOR_KIND="gpu")
    return cluster


def deploys(monkeypatch: pytest.MonkeyPatch, os_name: str) -> None:
    scheduling = {"SlurmSettings": {"ScaledownIdletime": 20}}
    config = {"Image": {"Os": os_name}, "Scheduling": scheduling}
    monkeypatch.setattr("ops.verify.scene.read_cluster_config", lambda *_: config)


def scene_of(cluster: PlayedCluster) -> Scene:
    return on_gpu_node(open_scene("training", cluster.client, list[str]().append))


def results(
    cluster: PlayedCluster,
    monkeypatch: pytest.MonkeyPatch,
    *,
    product: str = DEVICE,
    end: str = ENDED,
    **speeds: Any,
) -> dict[str, Result]:
    def run_job(workload: str, _scene: Scene, *, settings: dict[str, str], **_: Any) -> JobSeen:
        text = product if workload == PRODUCT.workload else end if settings.get("COMPILE") == "no" else ""
        return JobSeen(id="31", run=f"{workload}/verify-1", text=text)

    def read(run: str, _node: object) -> Run:
        names = ["mfu"] if run.startswith(PRODUCT.workload) else [*SPEEDS]
        return Run.model_construct(summary=Summary(**{name: (SPEEDS | speeds)[name] for name in names}))

    monkeypatch.setattr("ops.verify.gpu.run_job", run_job)
    monkeypatch.setattr("ops.verify.gpu.read_on_cluster", read)
    scene = scene_of(cluster)
    return {check.id: check.run(scene) for check in GPU_CHECKS}


def test_a_good_gpu_holds(p5: PlayedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    found = results(p5, monkeypatch)
    assert {each.verdict for each in found.values()} == {"held"}, found
    assert "SM 1980 of 1980 MHz" in found["gpu-load"].seen
    assert found["gpu-product"].seen.startswith(
        "77.0% of the peak: 98% of the recorded figure (measured here"
    )
    assert found["gpu-gpt2"].seen.startswith(
        "280,000 tokens/s on one GPU, loss 11.00 to 6.40: 99% of the recorded"
    )
    assert found["gpu-memory"].seen == SENTENCE


def test_what_is_wrong_with_a_gpu_differs(p5: PlayedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for change, verdicts, said in (
        ({"product": SLOWED}, {"gpu-load": "differs"}, "slowed while it works: hw_thermal_slowdown"),
        (
            {"product": "0: device 0 of n: 3 TFLOP/s; nvidia-smi: No such file or directory\n"},
            {"gpu-load": "could not look"},
            "nvidia-smi: No such file",
        ),
        ({"mfu": 0.6}, {"gpu-product": "differs"}, "60.0% of the peak: 76% of the recorded figure"),
        (
            {"tokens_per_s": None},
            {"gpu-gpt2": "differs", "gpu-titan": "differs"},
            "nothing was measured; the job is forgotten by Slurm: no output",
        ),
        ({"last_loss": 11.5}, {"gpu-gpt2": "differs", "gpu-titan": "differs"}, "loss 11.00 to 11.50"),
        ({"end": f"{ENDED}{ENDED}"}, {"gpu-memory": "differs"}, SENTENCE),
        ({"end": f"0: Traceback (most recent\n{ENDED}"}, {"gpu-memory": "differs"}, SENTENCE),
        ({"end": "0: step 1: loss 11\n"}, {"gpu-memory": "differs"}, "step 1: loss 11"),
    ):
        found = results(p5, monkeypatch, **change)
        assert {name: each.verdict for name, each in found.items() if each.verdict != "held"} == verdicts, (
            change
        )
        assert any(said in each.seen for each in found.values()), change


def test_a_missing_environment_blames_no_gpu(p5: PlayedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    deploys(monkeypatch, "ubuntu2204")  # with Python 3.10
    found = results(p5, monkeypatch)
    assert {name for name, each in found.items() if each.verdict != "held"} == {"gpu-titan"}
    assert found["gpu-titan"].verdict == "could not look"
    assert found["gpu-titan"].seen == "titan has no environment for the recipe gpu on ubuntu2204"


def test_the_sentences_are_those_of_jobs() -> None:
    assert '"the training failed ($failed)"' in (TRAINING / "restarts.sh").read_text()
    assert "the GPU has too little memory for a step with" in (TRAINING / "trainkit/memory.py").read_text()


def test_a_family_without_figures_is_measured(p5: PlayedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    p5.has_nodes("g6.48xlarge", recipe="gpu", ACCELERATOR_KIND="gpu")
    found = results(p5, monkeypatch, tokens_per_s=9_000.0)
    assert {each.verdict for each in found.values()} == {"held"}
    assert found["gpu-titan"].seen == (
        "9,000 tokens/s on one GPU, loss 11.00 to 6.40: no recorded figure for g6; record it in "
        "assets/training/titan/figures.json"
    )


@pytest.mark.parametrize("job", JOBS, ids=["product", "gpt2", "titan", "too large"])
def test_jobs_take_the_settings_of_figures(job: GpuJob) -> None:
    for family in ("p5", "g6"):
        assert check_job_settings(job.workload, job.settings_on(family), ()) == ""
    figure = job.recorded("p5")
    assert (figure is None) == (job is TOO_LARGE)
    assert TITAN.settings_on("p5")["BATCH_SIZE"] == "2"
    assert "BATCH_SIZE" not in TITAN.settings_on("g6")


def test_the_jobs_run_on_the_first_gpu_queue(p5: PlayedCluster) -> None:
    """Through sbatch of job.slurm, one node each; then what they wrote is removed."""
    partitions = p5.shared.parent / "etc" / "partitions"
    (partitions / "gpu.env").rename(partitions / "big.env")
    p5.has_nodes("m6i.large", recipe="cpu", ACCELERATOR_KIND="none")
    p5.says(
        "sinfo",
        "".join(f"{name}|up|idle~|4|{name[:3]}-dy-a-[1-4]|Unknown|none\n" for name in ("gpu*", "big")),
    )
    p5.says("sbatch", "31\n")
    p5.says("squeue", job_line("FAILED", id_="31", output="/fsx/runs/job-31.log"))
    p5.has_log("31", ENDED)
    for name in {*WORKLOADS}:
        p5.has_workload(name)
    p5.account.answers["ListStackResources"] = {"StackResourceSummaries": []}
    said: list[str] = []
    scene = on_gpu_node(open_scene("training", p5.client, said.append))
    found = {each.id: each.verdict for each in run_node_checks(scene, GPU_CHECKS, WORKLOADS)}
    assert found["gpu-memory"] == "held"
    calls = p5.called("sbatch")
    assert [next(word for word in call if word in WORKLOADS) for call in calls] == [*WORKLOADS]
    for call in calls:
        assert {"--nodes=1", "--partition=big", "--time=20"} <= set(call)
    assert said[0].startswith(
        "1 x p5.4xlarge for nccl-tests and gpt2 and titan and gpt2: 11.47 USD on demand at most"
    )
    assert not (p5.shared / "runs" / "job-31.log").exists()


def test_a_cluster_without_gpus_is_refused(cluster: PlayedCluster, call: Call) -> None:
    cluster.has_nodes("m6i.large", recipe="cpu", ACCELERATOR_KIND="none")
    code, output, told = call("verify", "--gpu")
    assert (code, output) == (2, "")
    assert told == (
        "verify --gpu: no node of traincluster has an NVIDIA GPU: gpu (m6i.large).\n"
        "  type:    trainctl verify --nodes 1, which trains on any node\n"
    )
    assert cluster.called("sbatch") == []
    assert call("verify", "--gpu", "--nodes", "1")[0] == 2


def test_a_rehearsal_is_refused(p5: PlayedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ops.verify.scene.local_endpoint", lambda _client: "http://127.0.0.1:1")
    with pytest.raises(UsageError, match="a rehearsal, whose nodes have none"):
        scene_of(p5)
