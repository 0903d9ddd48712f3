"""The flags of the last deploy, as trainctl reads them."""

import pytest

from ops.account.deployed_flags import flags_of, flags_or_none
from tests.unit.ops.fake_account import Account, Refused
from tests.unit.ops.plan.test_plan import templates_of
from training_cluster.flags.given import GIVEN_FLAGS
from training_cluster.rules.context import read_settings
from training_cluster.stack_names import NETWORK_STACK, STORAGE_STACK


@pytest.mark.parametrize(
    "ssh", [{"ssh_from": "203.0.113.0/24"}, {"ssh_from": "0.0.0.0/0", "ssh_from_anywhere": "yes"}, {}]
)
def test_flags_of_shared_stacks_are_the_deployed_ones(ssh: dict[str, str]) -> None:
    anywhere = {"ssh_from": "0.0.0.0/0", "ssh_from_anywhere": "yes"}
    recorded: dict[str, str] = {} if ssh == anywhere else anywhere
    templates = templates_of(read_settings({"family": "p5", "nodes": "4", **recorded}))
    later = templates_of(read_settings({"endpoints": "private", **ssh}))
    found = flags_of(templates | {NETWORK_STACK: later[NETWORK_STACK]}, "TrainingClusterStack")
    assert found is not None
    assert (found["family"], found["nodes"], found["endpoints"]) == ("p5", 4, "private")
    assert {flag: found[flag] for flag in found if flag.startswith("ssh_from")} == ssh


def test_flags_of_no_resource_are_left_out() -> None:
    adopted = {"efs_id": {"value": "fs-0123456789abcdef0"}}
    guard = {"Type": "Custom::Guard", "Properties": {"Values": adopted}}
    own = {"Metadata": {GIVEN_FLAGS: {"family": "p5", "efs_mibps": 100}}}
    found = flags_of({"own": own, STORAGE_STACK: {"Resources": {"Values": guard}}}, "own")
    assert found == {"family": "p5", "efs_id": "fs-0123456789abcdef0"}
    assert flags_or_none("training", Account({"GetTemplate": Refused("AccessDenied")}).client) is None
    missing = Account({"GetTemplate": Refused("ValidationError", "Stack with id a does not exist")})
    assert flags_or_none("training", missing.client) == {}
