"""Checks of `trainctl verify --gpu`: minutes on one GPU node, against what was recorded on its family."""

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ops.jobs.lookup import cluster_option, read_facts, read_nodes
from ops.report.record import Figure
from ops.report.source import read_on_cluster
from ops.usage import UsageError
from ops.verify.check import Check, Look
from ops.verify.node_jobs import JobSeen, run_job
from ops.verify.nodes import called_healthy
from ops.verify.scene import Scene, UnseenError
from ops.verify.workloads import NETWORK, nodes_of
from training_cluster.catalog.workloads import workloads_of
from training_cluster.paths import TRAINING

LIMIT_MIN = 20
"""Time limit of each job, of which the first one may make its environment."""
LEAST = 0.8
"""Part of a recorded figure below which a GPU is slow. Series of products on one H100 were 12 % apart."""
_TRAINING = {"NPROC_PER_NODE": "1", "MAX_STEPS": "40", "EVAL_SEQUENCES": "0"}
_GPT2 = {**_TRAINING, "CORPUS": "machine", "INIT_FROM": "scratch"}


@dataclass(frozen=True, kw_only=True)
class GpuJob:
    """A job of these checks, on one rank if it trains, as the recorded figures are of one GPU."""

    workload: str
    settings: Mapping[str, str]
    """Settings, before those of the family's recorded figure."""
    metric: str = ""
    """Measure of a run's summary for which a figure may be recorded; empty for none."""

    def recorded(self, family: str) -> Figure | None:
        """Return the figure that was measured with this project on a family; None without one."""
        rows = json.loads((TRAINING / self.workload / "figures.json").read_text(encoding="utf-8"))
        for figure in map(Figure.model_validate, rows):
            if figure.reproduced and (figure.family, figure.metric) == (family, self.metric):
                return figure
        return None

    def settings_on(self, family: str) -> dict[str, str]:
        """Return the settings with those of the recorded figure, so that both are alike."""
        figure = self.recorded(family)
        given = {name.upper(): str(value) for name, value in figure.settings.items()} if figure else {}
        return {"MAX_RESTARTS": "0", **self.settings, **given}


PRODUCT = GpuJob(
    workload=NETWORK, settings={"MEASURE_WITH": "product", "ENVIRONMENT_OF": "gpt2"}, metric="mfu"
)
GPT2 = GpuJob(workload="gpt2", settings=_GPT2, metric="tokens_per_s")
TITAN = GpuJob(
    workload="titan",
    settings={**_TRAINING, "DATA": "machine", "SIZE": "1B", "SEQ_LEN": "8192", "EXPORT": "no"},
    metric="tokens_per_s",
)
TOO_LARGE = GpuJob(workload="gpt2", settings={**_GPT2, "BATCH_SIZE": "16384", "COMPILE": "no"})
"""A micro-step whose embeddings alone take 48 GiB, and each of 12 layers several times as much."""
JOBS = (PRODUCT, GPT2, TITAN, TOO_LARGE)
WORKLOADS = tuple(each.workload for each in JOBS)

_DEVICE = re.compile(r"^(?:\d+: )?(device \d+ of .+)$", re.MULTILINE)
_SLOWED = re.compile(r"^product\.py: (.+)$", re.MULTILINE)
_ENDED = re.compile(r"job\.slurm: the training failed \((.*the GPU has too little memory for a step .*)\);")
_TRACEBACK = re.compile(r"^\d+: Traceback", re.MULTILINE)


def on_gpu_node(scene: Scene) -> Scene:
    """Return the scene on one node of the first partition with NVIDIA's GPUs, the default one before others.

    Raises UsageError if there is none, OpsError, and botocore's errors.
    """
    others = []
    for each in sorted(read_nodes(scene.head_node)[0], key=lambda each: not each.is_default):
        facts = read_facts(each.name, scene.head_node)
        if facts.get("ACCELERATOR_KIND") == "gpu" and not scene.is_rehearsal:
            return dataclasses.replace(scene, nodes=1, partition=each.name, limit_min=LIMIT_MIN)
        others.append(f"{each.name} ({facts.get('INSTANCE_TYPE', 'unknown')})")
    where = "a rehearsal, whose nodes have none" if scene.is_rehearsal else ", ".join(others)
    raise UsageError(
        f"verify --gpu: no node of {scene.cluster.name} has an NVIDIA GPU: {where}.\n"
        f"  type:    trainctl verify --nodes 1{cluster_option(scene.cluster.name)}, which trains on any node"
    )


def _seen(job: GpuJob, scene: Scene) -> JobSeen:
    nodes, os_name = nodes_of(scene), str(scene.config["Image"]["Os"])
    if job.workload not in workloads_of(nodes.recipe, os_name):
        raise UnseenError(f"{job.workload} has no environment for the recipe {nodes.recipe} on {os_name}")
    settings = job.settings_on(nodes.family)
    name = f"GPU job {JOBS.index(job)}"
    return scene.once(name, lambda: run_job(job.workload, scene, settings=settings))


def _works_unslowed(scene: Scene) -> tuple[bool, str]:
    job = _seen(PRODUCT, scene)
    devices = _DEVICE.findall(job.text)
    if not devices or any("nvidia-smi: " in each for each in devices):
        raise UnseenError("; ".join(devices) or job.last_line)
    return not _SLOWED.search(job.text), "; ".join(_SLOWED.findall(job.text) or devices)


def _is_as_fast(job: GpuJob) -> Look:
    def look(scene: Scene) -> tuple[bool, str]:
        seen, family = _seen(job, scene), nodes_of(scene).family
        summary = read_on_cluster(seen.run, scene.head_node).summary
        value: float | None = getattr(summary, job.metric)
        if value is None:
            ended = seen.ended.ending if seen.ended else "forgotten by Slurm"
            return False, f"nothing was measured; the job is {ended}: {seen.last_line}"
        shown = f"{value:.1%} of the peak" if job.metric == "mfu" else f"{value:,.0f} tokens/s on one GPU"
        falls = True
        if summary.first_loss is not None:
            falls = summary.last_loss is not None and summary.last_loss < summary.first_loss
            shown += f", loss {summary.first_loss:.2f} to {summary.last_loss or float('nan'):.2f}"
        if figure := job.recorded(family):
            return falls and value >= LEAST * figure.value, (
                f"{shown}: {value / figure.value:.0%} of the recorded figure ({figure.source})"
            )
        file = f"assets/training/{job.workload}/figures.json"
        return falls, f"{shown}: no recorded figure for {family}; record it in {file}"

    return look


def _names_what_to_lower(scene: Scene) -> tuple[bool, str]:
    job = _seen(TOO_LARGE, scene)
    sentences = _ENDED.findall(job.text)
    is_one = len(sentences) == 1 and not _TRACEBACK.search(job.text)
    return is_one, sentences[0] if sentences else job.last_line


_LOCAL = "GPUs: this machine has none, and the command refuses a rehearsal."
_SPEEDS = (
    (PRODUCT, "product", "The slowest GPU of the node multiplies matrices in 16 bits"),
    (GPT2, "gpt2", "The loss of gpt2 (124M) falls in 40 steps, and one GPU trains it"),
    (TITAN, "titan", "The loss of titan (Llama 3, 1B) falls in 40 steps, and one GPU trains it"),
)
GPU_CHECKS = (
    Check(
        id="gpu-load",
        claim="At full load, neither heat nor the power supply slows a GPU of the node.",
        expected="no slowdown; clocks, temperature, power, PCIe and driver are shown for comparison",
        not_in_rehearsal=_LOCAL,
        look=_works_unslowed,
    ),
    Check(
        id="gpu-health",
        claim="The checks before and after a job (GPUs, fabric, NVLinks, CUDA, ECC, XIDs) call the node "
        "healthy.",
        expected="no node drained with the reason training-cluster, and no check at its drain limit",
        not_in_rehearsal=_LOCAL,
        look=lambda scene: called_healthy(_seen(PRODUCT, scene), scene),
    ),
    *(
        Check(
            id=f"gpu-{name}",
            claim=f"{claim} as fast as its family does.",
            expected=f"at least {LEAST:.0%} of the family's figure in figures.json of {job.workload}",
            not_in_rehearsal=_LOCAL,
            look=_is_as_fast(job),
        )
        for job, name, claim in _SPEEDS
    ),
    Check(
        id="gpu-memory",
        claim="A batch that is far too large ends in one sentence that names what to lower.",
        expected="one sentence of job.slurm with BATCH_SIZE, and no traceback of a rank",
        not_in_rehearsal=_LOCAL,
        look=_names_what_to_lower,
    ),
)
"""Checks that submit four jobs on one node that costs money."""
