"""Rules about the queues of the flags and of the file."""

from collections import Counter
from collections.abc import Iterable, Iterator

from training_cluster.catalog.families import find_instance_type
from training_cluster.flags.settings import Settings
from training_cluster.problems import Contradiction
from training_cluster.queues.file import flags_of_file, read_queues
from training_cluster.queues.queue import BUILD, OFFICIAL, ONE_USER, NodeType, Queue

# InstancesAllocationStrategyValidator of ParallelCluster.
_STRATEGIES = {
    "ondemand": ("lowest-price", "prioritized"),
    "reservation": ("lowest-price", "prioritized"),
    "spot": (
        "lowest-price",
        "capacity-optimized",
        "price-capacity-optimized",
        "capacity-optimized-prioritized",
    ),
    "capacity-block": (),
}


def _flags_agree_with_the_file(settings: Settings) -> Iterator[Contradiction]:
    """Refuse a flag whose value differs in the file, for the queue that `queue_name` takes from it."""
    for flag, value in flags_of_file(settings.queues, settings.queue_name).items():
        if (given := getattr(settings, flag)) != value:
            yield Contradiction(
                problem=f"{flag}={given}: the queue {settings.queue_name} of {settings.queues} has {value}",
                mend=f"leave {flag} out, or change it in {settings.queues}",
            )


def _names_are_unique(settings: Settings) -> Iterator[Contradiction]:
    counts = Counter(queue.name for queue in settings.all_queues)
    # Without a file, cpu_queue alone can have the name of the flags' queue, which its own rule refuses.
    for name in (each for each, count in counts.items() if count > 1 and settings.queues):
        yield Contradiction(
            problem=f"queues={settings.queues}: {name} is the queue of the flags or of cpu_queue already",
            mend=f"another name in {settings.queues}, or -c queue_name=...",
        )


def _architecture_is_one(settings: Settings) -> Iterator[Contradiction]:
    """Refuse nodes of two architectures, as InstanceArchitectureCompatibilityValidator does."""
    ours = settings.family_facts.architecture
    for queue in settings.all_queues:
        for each in queue.types:
            if each.family.architecture != ours:
                yield Contradiction(
                    problem=f"{_place(settings, queue)}{each.name} is {each.family.architecture}, and "
                    f"{settings.compute_type} {ours}: a cluster has one architecture",
                    mend="instance types of one architecture, or a second cluster: -c cluster_name=...",
                )
    head = find_instance_type(settings.head_type)
    if head and head[0].architecture != ours:
        yield Contradiction(
            problem=f"head_node_type={settings.head_type} is {head[0].architecture}, and the nodes "
            f"({settings.compute_type}) {ours}: a cluster has one architecture",
            mend=f"-c head_node_type={settings.family_facts.head_node_type}",
        )
    if ours == "arm64" and settings.node_image == BUILD:
        yield Contradiction(
            problem=f"image=build: its content is made for x86_64, and {settings.compute_type} is arm64",
            mend="-c image=official, or your own AMI: -c image=ami-...",
        )


def _types_of_a_resource_agree(settings: Settings) -> Iterator[Contradiction]:
    """Refuse what ParallelCluster's validators of several instance types refuse."""
    for queue in settings.all_queues:
        for resource in queue.resources:
            vcpus = {each.size.vcpus for each in resource.types}
            if len(vcpus) > 1:
                yield Contradiction(
                    problem=f"{_place(settings, queue)}{_listed(resource.types)}: one compute resource has "
                    f"types with one number of vCPUs, and these have {', '.join(map(str, sorted(vcpus)))}",
                    mend="types of one size, or an item each below compute_resources",
                )


def _accelerators_of_a_queue_agree(settings: Settings) -> Iterator[Contradiction]:
    """Refuse a partition whose jobs could not know how many ranks a node has."""
    for queue in settings.all_queues:
        kinds = {(each.family.accelerator.kind, each.size.accelerators) for each in queue.types}
        if len(kinds) > 1:
            found = ", ".join(f"{each.name} {each.size.accelerators}" for each in queue.types)
            yield Contradiction(
                problem=f"{_place(settings, queue)}its types have different accelerators ({found}), and jobs "
                "start as many ranks on every node",
                mend="a queue each; a job that may run on both: sbatch --partition a,b",
            )


def _capacity_of_queues(settings: Settings) -> Iterator[Contradiction]:
    for queue in settings.all_queues:
        place = _place(settings, queue)
        for each in queue.types:
            sold = each.family.capacity_of(each.name)
            if queue.capacity_type not in sold:
                yield Contradiction(
                    problem=f"{place}EC2 does not sell {each.name} as {queue.capacity_type}, only as "
                    f"{', '.join(sold)}",
                    mend=_typed(settings, queue, "capacity", "ondemand"),
                )
        yield from _reservations_of(queue, place)
        if queue.capacity_type == "capacity-block" and queue.named_placement_group:
            yield Contradiction(
                problem=f"{place}placement_group {queue.placement_group}: nodes of a Capacity Block are "
                "close together already, and another group would leave it without its capacity",
                mend=_typed(settings, queue, "placement_group", "off"),
            )
        allowed = _STRATEGIES[queue.capacity_type]
        if queue.allocation_strategy and queue.allocation_strategy not in allowed:
            yield Contradiction(
                problem=f"{place}allocation_strategy: {queue.allocation_strategy} is not for capacity "
                f"{queue.capacity_type}",
                mend=f"one of {', '.join(allowed)}" if allowed else "leave allocation_strategy out",
            )


def _reservations_of(queue: Queue, place: str) -> Iterator[Contradiction]:
    types: dict[str, dict[str, NodeType]] = {}
    for resource in queue.resources:
        if resource.reservation and queue.capacity_type == "spot":
            yield Contradiction(
                problem=f"{place}{resource.name}: reservation: spot nodes use none",
                mend="leave capacity: spot or reservation out",
            )
        if reserved := resource.reservation or queue.reservation_id:
            types.setdefault(reserved, {}).update({each.name: each for each in resource.types})
    for reserved, of in types.items():
        if reserved.startswith("cr-") and len(of) > 1:
            found = _listed(of.values())
            yield Contradiction(
                problem=f"{place}{reserved} is of one instance type, and the queue has {found}",
                mend="a queue or a compute resource with the reservation's type alone",
            )


def _images_of_queues(settings: Settings) -> Iterator[Contradiction]:
    for queue in settings.all_queues:
        place, recipe = _place(settings, queue), settings.family_facts.image_recipe
        built = settings.node_image == BUILD and queue.image_recipe == recipe
        if queue.image == BUILD and not built:
            recipe_of = f"an image for {recipe} nodes, and these are {queue.image_recipe}"
            built_for = recipe_of if settings.node_image == BUILD else "no image"
            yield Contradiction(
                problem=f"{place}image: build: this cluster builds {built_for}",
                mend="image: official, your own AMI, or -c image=build with a family of that kind",
            )
        for each in queue.types:
            if queue.image == OFFICIAL and (why := each.family.official_image_refused):
                own, build = (_typed(settings, queue, "image", value) for value in ("ami-...", BUILD))
                yield Contradiction(
                    problem=f"{place}the official image does not run on {each.name}: {why}",
                    mend=f"{own}, or {build}" if built or not place else own,
                )


def _shared_queues(settings: Settings) -> Iterator[Contradiction]:
    """Refuse a shared queue whose users nothing could keep apart, and a second way to share."""
    for queue in settings.all_queues:
        place = _place(settings, queue)
        own = next((key for key in queue.partition if key.lower() == ONE_USER.lower()), None)
        if own and settings.has_users:
            yield Contradiction(
                problem=f"{place}partition: {own}: with users, the queue's key `shared` decides",
                mend=f"leave {own} out, or shared: true, by which jobs of several users share a node",
            )
        if queue.shared and not settings.has_users:
            yield Contradiction(
                problem=f"{place}shared: true: several users share a node, and the cluster has one",
                mend="leave shared out, or -c users=FILE or -c directory=FILE",
            )
        if queue.shared and queue.first.family.accelerator.kind == "neuron":
            yield Contradiction(
                problem=f"{place}shared: true: Slurm cannot keep jobs off each other's NeuronCores",
                mend="leave shared out",
            )


def _place(settings: Settings, queue: Queue) -> str:
    return f"queues={settings.queues}: {queue.name}: " if _is_of_file(settings, queue) else ""


def _typed(settings: Settings, queue: Queue, key: str, value: str) -> str:
    return f"{key}: {value}" if _is_of_file(settings, queue) else f"-c {key}={value}"


def _listed(types: Iterable[NodeType]) -> str:
    return ", ".join(each.name for each in types)


def _is_of_file(settings: Settings, queue: Queue) -> bool:
    return bool(settings.queues) and queue.name in read_queues(str(settings.queues))


QUEUE_RULES = (
    _flags_agree_with_the_file,
    _names_are_unique,
    _architecture_is_one,
    _types_of_a_resource_agree,
    _accelerators_of_a_queue_agree,
    _capacity_of_queues,
    _images_of_queues,
    _shared_queues,
)
