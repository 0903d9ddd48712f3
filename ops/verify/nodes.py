"""Checks that start nodes: an all-reduce between them, and a training of ten minutes."""

import re
from collections.abc import Sequence

from ops.report.record import Run
from ops.report.source import read_on_cluster
from ops.verify import lustre, people
from ops.verify.check import Check, Result
from ops.verify.node_jobs import JobSeen, remove_runs, run_job
from ops.verify.scene import Scene, UnseenError
from ops.verify.workloads import nodes_of, say_price
from training_cluster.catalog.families import instance_hour

_MOST_START_MIN = 15
_TRAINING_S = 600.0
_JUDGED = "all-reduce as it should be: "
_FAULT = re.compile(r"^judge\.py: (.+)$", re.MULTILINE)
_EFA_FAULTS = ("EFA unused", "cards missing")
_BY_A_CHECK, _JUDGEMENTS = "training-cluster: ", "NodeList:100,Reason:300,Comment:300"
_THROUGH = re.compile(r"\bvia NET/(?:AWS )?(\w+)/")
_GPU_RECIPES, _CONTAINER_TOOL = ("gpu", "volta"), "nvidia-container-cli"
_ONE_USER = "one user"
# Step 74 writes the first file with users or a directory, and the module's path into the second.
_PAM = f"""[[ -e /etc/training-cluster/pass-to-nodes ]] || {{ echo {_ONE_USER}; exit; }}
ls "$(grep --only-matching '/[^ ]*/pam_slurm_adopt.so' /etc/pam.d/sshd)" || echo no module"""
_PROVIDER = re.compile(r"NET/OFI Selected provider is (\S+?),")


def _network_job(scene: Scene) -> JobSeen:
    workload = nodes_of(scene).network
    if workload is None:
        raise UnseenError("NCCL is not for Trainium; nccom-test of the Neuron tools measures its network")
    return scene.once("network job", lambda: run_job(workload, scene))


def _training_job(scene: Scene) -> JobSeen:
    workload = nodes_of(scene).training
    return scene.once("training job", lambda: run_job(workload, scene, most_trained_s=_TRAINING_S))


def _jobs(scene: Scene) -> list[JobSeen]:
    """Return the jobs in the order in which they run."""
    network = [_network_job(scene)] if nodes_of(scene).network else []
    return [*network, _training_job(scene)]


def _record(job: JobSeen, scene: Scene) -> Run:
    return scene.once(f"record of {job.run}", lambda: read_on_cluster(job.run, scene.head_node))


def _starts_in_time(scene: Scene) -> tuple[bool, str]:
    job = _network_job(scene) if nodes_of(scene).network else _training_job(scene)
    if job.began_s is None:
        return False, f"job {job.id} wrote nothing: {job.ended.ending if job.ended else 'forgotten'}"
    minutes = job.began_s / 60
    return minutes <= _MOST_START_MIN, f"{minutes:.1f} minutes from sbatch to the job's first line"


def _is_called_healthy(scene: Scene) -> tuple[bool, str]:
    return called_healthy(_network_job(scene) if nodes_of(scene).network else _training_job(scene), scene)


def called_healthy(job: JobSeen, scene: Scene) -> tuple[bool, str]:
    """Return True if no node is drained by a health check after a job, and the words of those that are."""
    said = scene.head_node.run("sinfo", "--all", "--noheader", f"--Format={_JUDGEMENTS}", reads_only=True)
    # Reason of a drained node, or comment of one at a drain limit; lines of equal nodes are one.
    sick = [" ".join(line.split()) for line in said.splitlines() if _BY_A_CHECK in line]
    return not sick, "; ".join(sick) or f"no node of job {job.id} is drained, or at a check's drain limit"


def _bandwidth(scene: Scene) -> tuple[bool, str]:
    job = _network_job(scene)
    if judged := next((line for line in job.text.splitlines() if line.startswith(_JUDGED)), None):
        return True, judged.removeprefix(_JUDGED)
    if faults := _FAULT.findall(job.text):
        return False, " ".join(faults)
    raise UnseenError(f"nccl-tests was not judged: {job.last_line.strip()}")


def _goes_over_efa(scene: Scene) -> tuple[bool, str]:
    job = _network_job(scene)
    networks = sorted(set(_THROUGH.findall(job.text)))
    providers = sorted(set(_PROVIDER.findall(job.text)))
    if faults := [each for each in _FAULT.findall(job.text) if each.startswith(_EFA_FAULTS)]:
        return False, " ".join(faults)
    if not networks:
        raise UnseenError("the job's log has no line of NCCL: it ran over gloo, or did not run")
    shown = f"NCCL over {', '.join(networks)}; libfabric's provider: {', '.join(providers) or 'none'}"
    return networks == ["Libfabric"] and providers in ([], ["efa"]), shown


def _trained(scene: Scene) -> tuple[bool, str]:
    job = _training_job(scene)
    summary = _record(job, scene).summary
    how = "for ten minutes" if job.was_stopped else "to its end"
    ended = job.ended.ending if job.ended else "forgotten by Slurm"
    if not summary.steps:
        return False, f"no step; the job is {ended}: {job.last_line}"
    loss = f", loss {summary.first_loss:.2f} to {summary.last_loss:.2f}" if summary.last_loss else ""
    is_well = job.was_stopped or (job.ended is not None and job.ended.state == "COMPLETED")
    falls = summary.first_loss is None or summary.last_loss is None or summary.last_loss < summary.first_loss
    return is_well and falls, f"{summary.steps} steps {how}{loss}; the job is {ended}"


def _gives_gpus_to_containers(scene: Scene) -> tuple[bool, str]:
    if nodes_of(scene).recipe not in _GPU_RECIPES:
        raise UnseenError("these nodes have no GPUs of NVIDIA")
    seen = _ask_node(f"{_CONTAINER_TOOL} --version || echo missing", scene)
    return "version:" in seen, f"{_CONTAINER_TOOL}: {seen}"


def _admits_only_jobs(scene: Scene) -> tuple[bool, str]:
    seen = _ask_node(_PAM, scene)
    if seen == _ONE_USER:
        raise UnseenError("the cluster has neither users nor a directory")
    return "pam_slurm_adopt.so" in seen, f"/etc/pam.d/sshd: {seen}"


def _ask_node(script: str, scene: Scene) -> str:
    """Return the first line that a script prints on a node."""
    _training_job(scene)  # after it, its nodes are idle
    said = scene.head_node.run("srun", "--nodes=1", "--time=5", "--immediate=60", "bash", "-c", script)
    return next((line.strip() for line in said.splitlines() if line.strip()), "no answer")


def _has_all_ranks(scene: Scene) -> tuple[bool, str]:
    run = _record(_training_job(scene), scene)
    expected = run.settings.get("EXPECTED_WORLD_SIZE")
    world = run.summary.world_size
    if world is None:
        return False, "the run recorded no world size"
    if expected is None:
        ranks = run.settings.get("NPROC_PER_NODE", "")
        if not ranks.isdigit():
            raise UnseenError(f"{world} ranks; the run recorded no number of ranks a node")
        expected = str(scene.nodes * int(ranks))
    return str(world) == expected, f"{world} ranks of {expected} on {scene.nodes} nodes"


def _cost_of_nodes(scene: Scene) -> tuple[bool, str]:
    runs = [_record(job, scene) for job in _jobs(scene)]
    use = [each for run in runs for each in run.use if each.instance_type]
    if not use:
        raise UnseenError("the runs recorded no instance type")
    usd = 0.0
    for each in use:
        price = instance_hour(str(each.instance_type))
        if price is None:
            return False, f"the catalog has no price of {each.instance_type}"
        usd += each.node_s / 3600 * price.usd
    hours = sum(each.node_s for each in use) / 3600
    return True, f"about {usd:.2f} USD for {hours:.2f} node-hours; boot and idle time come on top"


def _scales_down_later(scene: Scene) -> tuple[bool, str]:
    if scene.idle_min < 0:
        raise UnseenError("nodes never end: ScaledownIdletime is negative")
    raise UnseenError(
        f"look again {scene.idle_min} minutes after the last job: trainctl verify, check scaled-down"
    )


_LOCAL = "The nodes: a local node is a process of this machine, and starts in seconds."
NODE_CHECKS = (
    Check(
        id="node-start",
        claim="Nodes that are off start in time, and join Slurm.",
        expected=f"at most {_MOST_START_MIN} minutes (an estimate)",
        not_in_rehearsal=_LOCAL,
        look=_starts_in_time,
    ),
    Check(
        id="node-health",
        claim="The checks before and after a job, of the GPUs' fabric and of CUDA's start among others, "
        "call the nodes healthy.",
        expected="no node drained with the reason training-cluster, and no check at its drain limit",
        not_in_rehearsal="The checks of hardware: a local node checks only the disk.",
        look=_is_called_healthy,
    ),
    Check(
        id="efa",
        claim="NCCL uses EFA.",
        expected="NCCL over Libfabric; libfabric's provider: efa (not on Trainium, which has no NCCL)",
        not_in_rehearsal="EFA and NCCL: the local job runs over gloo.",
        look=_goes_over_efa,
    ),
    Check(
        id="bandwidth",
        claim="The all-reduce between the nodes reaches the family's floor (assets/training/nccl-tests).",
        expected="no fault that the workload's judge names",
        not_in_rehearsal="The network: all ranks are on this machine.",
        look=_bandwidth,
    ),
    Check(
        id="training",
        claim="A ten-minute training (gpt2; bert-trainium on Trainium) completes steps, and its loss falls.",
        expected="steps, and a lower last loss",
        not_in_rehearsal="Accelerators: a tiny model trains on the CPU.",
        look=_trained,
    ),
    Check(
        id="gpu-containers",
        claim="Nodes with GPUs have the program that gives them to containers; a node starts "
        "without it, too.",
        expected=f"the version of {_CONTAINER_TOOL} (not on nodes without NVIDIA's GPUs)",
        not_in_rehearsal="NVIDIA's container tools: a local node has none.",
        look=_gives_gpus_to_containers,
        only_on_aws=True,
    ),
    *lustre.CHECKS,
    *people.CHECKS,
    Check(
        id="ssh-needs-job",
        claim="With users, sshd of a compute node admits a user into a job of their own alone.",
        expected="the file of pam_slurm_adopt, which sshd's configuration of PAM names",
        not_in_rehearsal="The image: make rehearse USERS=2 tries Debian's sshd and module.",
        look=_admits_only_jobs,
        only_on_aws=True,
    ),
    Check(
        id="world-size",
        claim="All ranks of all nodes train together.",
        expected="nodes x ranks a node",
        not_in_rehearsal="The ranks of an accelerator: a local node has one.",
        look=_has_all_ranks,
    ),
    Check(
        id="cost-of-nodes",
        claim="The catalog has the price of the nodes that ran.",
        expected="a price; compare it with the bill",
        not_in_rehearsal="The bill: nothing is paid.",
        look=_cost_of_nodes,
        only_on_aws=True,
    ),
    Check(
        id="scaled-down-later",
        claim="The nodes of these jobs are terminated when they have been idle.",
        expected="no idle node, once ScaledownIdletime has passed since the last job",
        not_in_rehearsal="The instances: a local node is a process.",
        look=_scales_down_later,
    ),
)
"""Checks that submit two jobs on nodes that cost money."""


def run_node_checks(
    scene: Scene, checks: Sequence[Check] = NODE_CHECKS, workloads: Sequence[str] = ()
) -> list[Result]:
    """Run checks that start scene.nodes nodes, and remove what their jobs wrote.

    Args:
        workloads: those of the jobs; by default the network's and the training's.
    """
    results: list[Result] = []
    say_price(scene, workloads)
    try:
        results += (check.run(scene) for check in checks)
    finally:
        remove_runs(scene, keep_output=any(each.verdict == "differs" for each in results))
    return results
