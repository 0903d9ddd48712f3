"""Checks of what keeps several people apart on a shared node, which only cgroups and GPUs show."""

from ops.verify.check import Check
from ops.verify.scene import Scene, UnseenError
from training_cluster.cluster.queues import types_of
from training_cluster.queues.queue import ONE_USER

_STEP = ("srun", "--nodes=1", "--time=5", "--immediate=60")
_FOLDER = "/training-cluster/jobs/"
_SHARED = """\
n=0
for each in /dev/nvidia[0-9]*; do if (: <>"$each") 2>/dev/null; then n=$((n + 1)); fi; done
echo "$(findmnt --noheadings --output SOURCE --target /tmp), GPUs that it opens: $n"
"""


def _keeps_jobs_apart(scene: Scene) -> tuple[bool, str]:
    queues = scene.config["Scheduling"]["SlurmQueues"]
    queue = next((each for each in queues if each.get("CustomSlurmSettings", {}).get(ONE_USER) == "NO"), None)
    if queue is None:
        raise UnseenError("no queue of this cluster is shared")
    gpus = min(1, types_of(queue["ComputeResources"][0])[0].size.accelerators)
    options = (f"--partition={queue['Name']}", *(["--gpus=1"] if gpus else []))
    said = scene.head_node.run(*_STEP, *options, "bash", "-c", _SHARED).strip()
    return _FOLDER in said and said.endswith(f"opens: {gpus}"), f"folder of a job's temporary files: {said}"


CHECKS = (
    Check(
        id="shared-node",
        claim="On a running node of a shared queue, a job has its own folder of temporary files, and opens "
        "the GPU that it asked for and no other.",
        expected=f"a folder of {_FOLDER}, and 1 GPU, or 0 without GPUs (not without a shared queue)",
        not_in_rehearsal="GPUs and cgroups.",
        look=_keeps_jobs_apart,
        only_on_aws=True,
    ),
)
"""Checks of `trainctl verify --nodes` that run steps on nodes."""
