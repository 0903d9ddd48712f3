"""A Lustre file system with EFA: its size, its group, and what its clients still need."""

from collections.abc import Callable

import pytest
from aws_cdk.assertions import Template

from training_cluster.advice.advice import advice
from training_cluster.catalog.steps import load_steps
from training_cluster.flags.settings import Settings
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings

Synthesise = Callable[..., dict[str, Template]]


EFA = {"fsx_efa": "on", "fsx_gib": "4800", "fsx_mbps_per_tib": "1000"}


def test_a_file_system_with_efa_stands_in_the_nodes_group_and_has_a_metadata_configuration(
    synthesise: Synthesise,
) -> None:
    storage = synthesise(**EFA)["StorageStack"]
    (system,) = (each["Properties"] for each in storage.find_resources("AWS::FSx::FileSystem").values())
    assert system["LustreConfiguration"] == {
        "DeploymentType": "PERSISTENT_2",
        "PerUnitStorageThroughput": 1000,
        "DataCompressionType": "LZ4",
        "EfaEnabled": True,
        "MetadataConfiguration": {"Mode": "AUTOMATIC"},
    }
    (group,) = system["SecurityGroupIds"]
    assert "TrainingCluster-Network" in group["Fn::ImportValue"]
    groups = storage.find_resources("AWS::EC2::SecurityGroup").values()
    assert not any("Lustre" in each["Properties"]["GroupDescription"] for each in groups)


@pytest.mark.parametrize(("speed", "gib"), [("1000", 4800), ("500", 9600), ("250", 19200), ("125", 38400)])
def test_a_file_system_with_efa_is_a_multiple_of_what_its_throughput_wants(speed: str, gib: int) -> None:
    flags = {"fsx_efa": "on", "fsx_mbps_per_tib": speed}
    assert read_settings(flags | {"fsx_gib": str(2 * gib)}).fsx_gib == 2 * gib
    with pytest.raises(ConfigurationError, match=f"multiples of {gib} GiB\n.*type: +-c fsx_gib={2 * gib}"):
        read_settings(flags | {"fsx_gib": str(gib + 2400)})


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            {"fsx_efa": "on"},
            "-c fsx_gib=19200, or the smallest size: -c fsx_mbps_per_tib=1000 -c fsx_gib=4800",
        ),
        ({"fsx_efa": "on", "fsx_type": "scratch2"}, "leave fsx_efa out"),
        ({"fsx_efa": "on", "fsx_id": "fs-0123456789abcdef0"}, "leave fsx_efa out"),
    ],
)
def test_efa_where_fsx_has_none_is_refused_with_what_to_type(flags: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        read_settings(flags)


@pytest.mark.parametrize(
    ("family", "words"),
    [
        ("p5", "configure-efa-fsx-lustre-client"),
        ("trn1", "configure-efa-fsx-lustre-client"),
        ("p4d", "p4d.24xlarge reaches it over TCP only"),
        ("trn2", "over TCP only"),
    ],
)
def test_efa_says_which_nodes_can_use_it_and_what_they_still_need(family: str, words: str) -> None:
    settings = read_settings(EFA | {"family": family})
    (found,) = (each for each in advice(settings) if each.id == "lustre-efa")
    assert words in found.text
    assert found.warns


def test_the_flag_promises_no_more_than_nodes_do() -> None:
    """No step configures the client; it would have to run before ParallelCluster mounts the file system."""
    said = Settings.model_fields["fsx_efa"].description or ""
    client = "configure-efa-fsx-lustre-client"
    steps = [step.text for step in load_steps()]
    assert any(client in text for text in steps) != (f"they do not run AWS's {client}" in said)
