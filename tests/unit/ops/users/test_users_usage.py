"""`trainctl usage`: sums over partitions, prices of the catalog, and what it says without accounting."""

from typing import Any

import pytest

from ops.account.head_node import CommandError, HeadNode
from ops.usage import OpsError
from ops.users.usage import read_usage, render_usage, sum_usage

P4D = {"INSTANCE_TYPE": "p4d.24xlarge", "ACCELERATORS_PER_NODE": "8"}
CPU = {"INSTANCE_TYPE": "m6i.32xlarge", "ACCELERATORS_PER_NODE": "0"}
WHEN = {"since": "2026-11-01", "until": "2026-11-24"}


class Head:
    """A head node with one answer of sum-usage.sh, and the facts of the partition gpu."""

    cluster_name, client = "training", None
    deploy_command = HeadNode.deploy_command

    def __init__(self, said: str | CommandError) -> None:
        self.said = said

    def run_script(self, *_: str, **__: Any) -> str:
        if isinstance(self.said, CommandError):
            raise self.said
        return self.said

    def run(self, _: str, path: str, **__: Any) -> str:
        if not path.endswith("/gpu.env"):
            raise CommandError("cat: No such file")
        return "".join(f"export {name}='{value}'\n" for name, value in P4D.items())


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


def test_nodes_of_an_unknown_partition_have_no_price() -> None:
    (found,) = read_usage(Head("alice|gone|1|3600|8\n"), by="user", **WHEN)  # type: ignore[arg-type]
    assert (found.node_hours, found.usd) == (1, None)
    text = render_usage((found,), by="user", cluster_name="training", **WHEN)
    assert text.splitlines()[1].split() == ["alice", "1", "1.00", "0.0022", "unknown"]


def test_the_table_ends_with_the_sum_of_all() -> None:
    found = read_usage(Head("alice|gpu|1|3600|28800\nbob|gpu|1|7200|57600\n"), by="user", **WHEN)  # type: ignore[arg-type]
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
def test_without_accounting_it_says_what_to_type(said: str) -> None:
    with pytest.raises(OpsError, match="type:   npx cdk deploy TrainingClusterStack -c accounting=new"):
        read_usage(Head(CommandError(f"sum-usage.sh: {said}")), by="user", **WHEN)  # type: ignore[arg-type]
