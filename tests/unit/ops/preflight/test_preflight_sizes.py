"""Checks of the storage's size on a deployed cluster."""

from dataclasses import replace

from ops.account.stacks import Stack
from ops.preflight.existing_network import unknown_network
from ops.preflight.sizes import check_sizes
from tests.unit.ops.fake_account import Account
from training_cluster.rules.context import read_settings
from training_cluster.stack_names import STORAGE_STACK

STACK = Stack(
    name=STORAGE_STACK, status="", is_protected=True, outputs={"FileSystemId": "fs-1"}, resources=()
)


def test_deployed_storage_is_advised_to_grow() -> None:
    """The cheapest new file system is smaller and faster, and the guard refuses it."""
    settings = read_settings({"family": "p5", "nodes": "64", "fsx_gib": "24000", "fsx_mbps_per_tib": "125"})
    new = unknown_network(settings)
    for existing, mend in (
        (new, "-c fsx_gib=9600 -c fsx_mbps_per_tib=1000"),
        (replace(new, stacks={STORAGE_STACK: STACK}), "-c fsx_gib=74400"),
    ):
        found, *_ = check_sizes(settings, existing, Account({}).client)
        assert f"in 5% of the time: {mend}" in found.found
