"""`trainctl usage`: sums over partitions, prices of the catalog, and what it says without accounting."""

from collections.abc import Callable

import pytest

from ops.usage import OpsError
from ops.users.usage import Usage, read_usage, render_usage, sum_usage
from tests.unit.ops.jobs_head_node import PlayedCluster
from training_cluster.stack_names import DEFAULT_CLUSTER as CLUSTER

P4D = {"INSTANCE_TYPE": "p4d.24xlarge", "ACCELERATORS_PER_NODE": "8"}
CPU = {"INSTANCE_TYPE": "m6i.32xlarge", "ACCELERATORS_PER_NODE": "0"}
Read = Callable[..., tuple[Usage, ...]]
WHEN = {"since": "2026-11-01", "until": "2026-11-24"}


@pytest.fixture
def read(cluster: PlayedCluster) -> Read:
    """Return a function that reads the use by users from lines of sacct."""

    def usage(*lines: str) -> tuple[Usage, ...]:
        cluster.says("sacct", "".join(f"{line}\n" for line in lines))
        return read_usage(cluster.head_node, by="user", **WHEN)

    cluster.has_nodes("p4d.24xlarge", recipe="gpu", ACCELERATORS_PER_NODE="8")
    return usage


def test_usage_is_summed_over_partitions_and_sorted() -> None:
    rows = [
        ["bob", "gpu", "1", "3600", "28800"],
        ["alice", "gpu", "2", "7200", "0"],
        ["alice", "cpu", "3", "1800", "0"],
    ]
    alice, bob = sum_usage(rows, {"gpu": P4D, "cpu": CPU})
    assert (alice.group, alice.jobs, alice.node_hours, alice.gpu_hours) == ("alice", 5, 2.5, 16)
    assert (bob.node_hours, bob.gpu_hours) == (1, 8)
    assert alice.usd and bob.usd and 2 * bob.usd < alice.usd < 2 * bob.usd + 10


def test_nodes_of_an_unknown_partition_have_no_price(read: Read) -> None:
    (found,) = read("alice|gone|3600|1|gres/gpu=8")
    assert (found.node_hours, found.usd) == (1, None)
    text = render_usage((found,), by="user", cluster_name="training", **WHEN)
    assert text.splitlines()[1].split() == ["alice", "1", "1.00", "8.00", "unknown"]


def test_the_table_ends_with_the_sum_of_all(read: Read) -> None:
    found = read("alice|gpu|3600|1|gres/gpu=8", "bob|gpu|3600|2|node=2,gres/gpu=16", "bob|gpu|0|1|")
    lines = render_usage(found, by="user", cluster_name="training", **WHEN).splitlines()
    assert lines[0].split() == ["USER", "JOBS", "NODE", "HOURS", "GPU", "HOURS", "USD"]
    assert [line.split()[:4] for line in lines[1:4]] == [
        ["bob", "1", "2.00", "16.00"],
        ["alice", "1", "1.00", "8.00"],
        ["all", "2", "3.00", "24.00"],
    ]


@pytest.mark.parametrize(
    "said",
    ["Slurm accounting storage is disabled", "You are not running a supported accounting_storage plugin"],
)
def test_without_accounting_it_says_what_to_type(said: str, cluster: PlayedCluster) -> None:
    cluster.says("sacct", "", error=said, code=1)
    with pytest.raises(OpsError, match=f"type:   trainctl deploy --cluster {CLUSTER} -c accounting=new"):
        read_usage(cluster.head_node, by="user", **WHEN)
