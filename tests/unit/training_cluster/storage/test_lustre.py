"""A Lustre file system with EFA: its size, its group, and the interfaces of its clients."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ops.jobs.lookup import parse_facts
from tests.unit.stacks.app import EVERYTHING
from training_cluster.advice.advice import advice
from training_cluster.cluster.job_environment import render_job_environments
from training_cluster.paths import ROOT
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings

AWS = yaml.safe_load((ROOT / "tests/unit/assets/bootstrap/steps/lustre.yaml").read_text())


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


def lustre_efa(**flags: str) -> dict[str, tuple[str, bool]]:
    """Return the interfaces of each queue in its jobs' environment, and whether advice warns of it."""
    settings = read_settings({"fsx_efa": "on", "fsx_gib": "19200", **flags})
    config = config_before_deploy(settings)
    said = {each.id: each for each in advice(settings, config)}
    return {
        name: (parse_facts(text)["LUSTRE_EFA_INTERFACES"], said[f"lustre-efa-{name}"].warns)
        for name, text in render_job_environments(config, settings).items()
    }


@pytest.mark.parametrize(("type_", "interfaces"), AWS["interfaces"].items())
def test_nodes_have_the_efa_interfaces_of_aws(type_: str, interfaces: int) -> None:
    found = lustre_efa(family=type_.partition(".")[0], instance_type=type_, nodes="2")
    assert found["gpu"] == (str(interfaces), True)


def test_all_nodes_stay_below_the_limit_of_connections() -> None:
    (most,) = re.findall(r"limit of (\d+) EFA connections", AWS["most_connections"])
    for nodes, interfaces in ((128, 8), (129, 7), (256, 4), (1024, 1), (1025, 0), (1250, 0)):
        assert lustre_efa(family="p5", nodes=str(nodes))["gpu"][0] == str(interfaces)
        assert nodes * interfaces <= int(most)


def test_other_nodes_reach_lustre_over_tcp(tmp_path: Path) -> None:
    assert lustre_efa(family="p4d")["gpu"] == ("0", True), "Nitro v3"
    assert lustre_efa(family="p5", cpu_queue="on")["cpu"] == ("0", False), "no EFA"
    (queues := tmp_path / "queues.yaml").write_text(
        "near: {family: p5}\nfar: {family: p5, subnet_ids: [subnet-0123456789abcdef0]}\n"
        "old: {instance_types: [c5n.18xlarge]}\n"
    )
    found = {name: count for name, (count, _) in lustre_efa(queues=str(queues)).items()}
    assert (found["near"], found["far"], found["old"]) == ("8", "0", "0")
