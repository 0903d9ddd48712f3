"""The nodes that `trainctl verify --nodes` starts: the workloads that they can run, and their price."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from botocore.exceptions import BotoCoreError, ClientError

from ops.jobs.lookup import PARTITIONS, find_partition, read_facts
from ops.usage import OpsError
from ops.verify.scene import Scene, UnseenError
from training_cluster.catalog.families import instance_hour, load_base
from training_cluster.catalog.workloads import workloads_of

NETWORK = "nccl-tests"
MOST_WAIT_MIN = 60
"""Minutes that a job may wait for nodes, which AWS may lack; then Slurm removes it (--deadline of sbatch)."""
_USUAL_TRAINING = "gpt2"
# Text that needs no download and no bucket: the node's own.
_SETTINGS = {"CORPUS": "machine", "MAX_RESTARTS": "0"}
_OWN_SETTINGS = {
    # Random weights, which need no download either.
    "gpt2": {"INIT_FROM": "scratch"},
    # A model whose graphs compile in minutes, and a vocabulary that 2 MB of text can fill.
    "bert-trainium": {
        "VOCAB_SIZE": "2048",
        "BERT_LAYERS": "2",
        "BERT_HEADS": "4",
        "BERT_WIDTH": "128",
        "BERT_CONTEXT": "64",
        "BATCH_SIZE": "8",
        "GRADIENT_ACCUMULATION": "2",
        "LEARNING_RATE": "2e-3",
        "WARMUP_STEPS": "20",
    },
}


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """The nodes of the partition to which jobs go without an option, or of the scene's."""

    family: str
    instance_type: str
    recipe: str
    """Recipe of their image."""

    @property
    def network(self) -> str | None:
        """Workload that measures the network between them; None on Trainium, which has no NCCL."""
        return None if self.recipe == "neuron" else NETWORK

    @property
    def training(self) -> str:
        """Workload that trains on them. Raises UnseenError if the catalog has none."""
        names = workloads_of(self.recipe)
        if not names:
            raise UnseenError(f"no workload is for nodes of the recipe {self.recipe}")
        return _USUAL_TRAINING if _USUAL_TRAINING in names else names[0]


def settings_of(workload: str) -> Mapping[str, str]:
    """Return the settings with which a workload needs neither download nor bucket."""
    return {**_SETTINGS, **_OWN_SETTINGS.get(workload, {})}


def nodes_of(scene: Scene) -> Nodes:
    """Read the facts about the nodes that their jobs read. Raises OpsError and botocore's errors."""

    def ask() -> Nodes:
        name = find_partition(scene.partition, scene.head_node).name
        facts = read_facts(name, scene.head_node)
        names = {"FAMILY": "family", "INSTANCE_TYPE": "instance_type", "IMAGE_RECIPE": "recipe"}
        if missing := set(names) - set(facts):
            raise UnseenError(f"{PARTITIONS}/{name}.env has no {' and no '.join(sorted(missing))}")
        return Nodes(**{field: facts[name] for name, field in names.items()})

    return scene.once("nodes", ask)


def say_price(scene: Scene, workloads: Sequence[str]) -> None:
    """Say before the first job what the nodes cost at most."""
    try:
        nodes = nodes_of(scene)
        jobs = workloads or [each for each in (nodes.network, nodes.training) if each]
    except (OpsError, BotoCoreError, ClientError):
        return  # each check reports it, and no job starts
    try:
        idle_min = max(scene.idle_min, 0)
    except (OpsError, BotoCoreError, ClientError):
        idle_min = load_base().scaledown_idle_min  # the checks need no config
    hours = scene.nodes * (len(jobs) * scene.limit_min + idle_min) / 60
    price = instance_hour(nodes.instance_type)
    cost = "the catalog has no price" if price is None else f"{price.usd * hours:.2f} USD on demand at most"
    scene.say(
        f"{scene.nodes} x {nodes.instance_type} for {' and '.join(jobs)}: {cost}, if each job runs for its "
        f"{scene.limit_min} minutes, and {idle_min} idle ones follow. Ctrl-C ends them"
    )
