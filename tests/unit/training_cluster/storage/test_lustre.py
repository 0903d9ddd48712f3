"""A Lustre file system with EFA: its size, its group, and what its clients still need."""

from typing import Any

import pytest

from tests.unit.stacks.app import EVERYTHING
from training_cluster.advice.advice import advice
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings


def test_lustre_with_efa_has_the_nodes_group(synthesise: Any) -> None:
    storage = synthesise(**EVERYTHING)["StorageStack"]
    (system,) = (each["Properties"] for each in storage.find_resources("AWS::FSx::FileSystem").values())
    assert system["LustreConfiguration"] == {
        "DeploymentType": "PERSISTENT_2",
        "PerUnitStorageThroughput": 250,
        "DataCompressionType": "LZ4",
        "EfaEnabled": True,
        "MetadataConfiguration": {"Mode": "AUTOMATIC"},
    }
    assert system["StorageCapacity"] == int(EVERYTHING["fsx_gib"])
    (group,) = system["SecurityGroupIds"]
    assert "TrainingCluster-Network" in group["Fn::ImportValue"]


@pytest.mark.parametrize(("speed", "gib"), [("1000", 4800), ("250", 19200)])
def test_its_size_is_a_multiple_for_its_throughput(speed: str, gib: int) -> None:
    flags = {"fsx_efa": "on", "fsx_mbps_per_tib": speed}
    assert read_settings(flags | {"fsx_gib": str(2 * gib)}).fsx_gib == 2 * gib
    with pytest.raises(ConfigurationError, match=f"multiples of {gib} GiB\n.*type: +-c fsx_gib={2 * gib}"):
        read_settings(flags | {"fsx_gib": str(gib + 2400)})


def test_efa_where_fsx_has_none_is_refused() -> None:
    for flags, words in (
        ({}, "-c fsx_gib=19200, or the smallest size: -c fsx_mbps_per_tib=1000 -c fsx_gib=4800"),
        ({"fsx_type": "scratch2"}, "leave fsx_efa out"),
        ({"fsx_id": "fs-0123456789abcdef0"}, "leave fsx_efa out"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            read_settings({"fsx_efa": "on", **flags})


def test_efa_says_what_nodes_still_need() -> None:
    """No step configures the client; it would have to run before ParallelCluster mounts the file system."""
    client = "configure-efa-fsx-lustre-client"
    for family, words in (("p5", client), ("p4d", "p4d.24xlarge reaches it over TCP only")):
        settings = read_settings({"fsx_efa": "on", "fsx_gib": "19200", "family": family})
        said = advice(settings, config_before_deploy(settings))
        (found,) = (each for each in said if each.id == "lustre-efa")
        assert words in found.text and found.warns
