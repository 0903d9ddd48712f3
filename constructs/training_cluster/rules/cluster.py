"""Rules about the head node and Slurm's accounting."""

from collections.abc import Iterator

from training_cluster.catalog.families import head_node_size, load_base
from training_cluster.catalog.ports import MYSQL_PORT
from training_cluster.flags.settings import Settings
from training_cluster.problems import Contradiction


def _accounting_is_complete(settings: Settings) -> Iterator[Contradiction]:
    kind, secret = settings.accounting, settings.accounting_secret
    own = kind not in {"off", "new"}
    if own and secret is None:
        yield Contradiction(
            problem=f"accounting={kind}: the password of your database is missing",
            mend="-c accounting_secret=arn:aws:secretsmanager:...",
        )
    for flag in ("accounting_secret", "accounting_user"):
        if not own and flag in settings.asked_flags:
            yield Contradiction(
                problem=f"{flag} is for your own database, and accounting={kind} is none",
                mend=f"-c accounting=HOST:{MYSQL_PORT}, or leave {flag} out",
            )
    if kind == "new" and settings.vpc_id:
        yield Contradiction(
            problem="accounting=new needs two more subnets, which are not added to an existing VPC",
            mend=f"-c accounting=HOST:{MYSQL_PORT} -c accounting_secret=arn:...",
        )


def _head_node_has_the_memory(settings: Settings) -> Iterator[Contradiction]:
    known, nodes = head_node_size(settings.head_type), sum(queue.most_nodes for queue in settings.all_queues)
    # ParallelCluster's HeadNodeMemorySizeValidator.
    needed = min(nodes / 25 + 0.6, 16)
    if known and known.memory_gib < needed:
        types = load_base().head_node.types.items()
        fits = next(name for name, size in types if size.memory_gib >= needed)
        yield Contradiction(
            problem=f"head_node_type={settings.head_type} has {known.memory_gib} GiB of memory, and "
            f"{nodes} nodes take {needed:.2f}",
            mend=f"-c head_node_type={fits}",
        )


def _people_have_one_source(settings: Settings) -> Iterator[Contradiction]:
    if settings.users and settings.directory:
        yield Contradiction(
            problem=f"users={settings.users} and directory={settings.directory}: "
            "the same name could belong to two users",
            mend="leave one of them out",
        )


CLUSTER_RULES = (
    _people_have_one_source,
    _accounting_is_complete,
    _head_node_has_the_memory,
)
