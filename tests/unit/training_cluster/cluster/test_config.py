"""The rendered ParallelCluster config: golden files, and the rules it keeps."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from training_cluster.catalog.families import family_names
from training_cluster.cluster.config import (
    SHARED_CLUSTER_SETTINGS,
    render_cluster_config,
)
from training_cluster.cluster.job_environment import render_job_environments
from training_cluster.cluster.queues import WEIGHTS
from training_cluster.cluster.resource_ids import PLACEHOLDERS, ResourceIds
from training_cluster.pcluster.check import config_problems
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings

GOLDEN = Path(__file__).with_name("golden.yaml")
"""The whole config of p5."""
DIFFERENCES = Path(__file__).with_name("differences.yaml")
"""All other configs, as differences from it."""
ABSENT, ANOTHER = "(absent)", "(another; of the last it has other)"
IMAGE = "ami-0123456789abcdef0"
CR = "cr-0123456789abcdef0"
QUEUES = "rehearsal/validation/queues/several.yaml"
USERS = "tests/unit/stacks/people/users.yaml"
OTHERS: dict[str, dict[str, str]] = {
    "seed-000-p3dn": {"family": "p3dn"},
    "seed-001-megatron": {"family": "p4d", "cpu_queue": "on", "image": IMAGE},
    "seed-002-xeon": {"family": "m6i", "nodes": "3"},
    "seed-003-trainium": {"family": "trn1", "zone": "use1-az4", "efs_mibps": "1024"},
    "queues": {"family": "p5", "queues": QUEUES},
    "tuning": {
        **{"login_nodes": "1", "cpu_queue": "on", "compute_root_gib": "400", "idle_minutes": "30"},
        **{"exclusive": "on", "detailed_monitoring": "on", "head_image": IMAGE},
        "security_groups": "sg-0123456789abcdef0,sg-0123456789abcdef1",
    },
    "private": {"public_access": "off", "login_nodes": "1", "home": "efs"},
    "reservation": {"family": "p5", "capacity": f"reservation:{CR}"},
    "reservation-tied": {"family": "p5", "capacity": f"reservation:{CR}", "placement_group": "tied"},
    "block": {"family": "p5", "capacity": f"capacity-block:{CR}", "nodes": "5"},
    "ungrouped": {"family": "p5", "placement_group": "off"},
    "users": {"family": "p5", "users": USERS},
    "users-accounting": {"family": "p5", "cpu_queue": "on", "users": USERS, "accounting": "new"},
    "everything": {
        **{"cpu_queue": "on", "login_nodes": "2", "accounting": "new", "capacity": "spot", "image": IMAGE}
    },
}
Config = dict[str, Any]


def ids(**changes: Any) -> ResourceIds:
    return replace(replace(PLACEHOLDERS, image_id=IMAGE, bootstrap_budget_s=560), **changes)


def render(**flags: str) -> Config:
    return render_cluster_config(settings=read_settings(flags), ids=ids())


def queue(**flags: str) -> Config:
    first: Config = render(**flags)["Scheduling"]["SlurmQueues"][0]
    return first


def assert_golden(path: Path, content: Config) -> None:
    text = yaml.safe_dump(content, sort_keys=False)
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text(), "read the difference, then: UPDATE_GOLDEN=1 pytest tests/unit"


def test_configs_are_golden() -> None:
    whole = render(family="p5")
    assert_golden(GOLDEN, whole)
    flags = {family: {"family": family} for family in family_names()} | OTHERS
    table = {}
    for name, chosen in flags.items():
        config = render(**chosen)
        assert config_problems(config) == [], name
        table[name] = dict(_changes(whole, config))
    assert_golden(DIFFERENCES, table)


def _changes(base: Any, config: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path and value of each entry of `config` that differs from `base`, or is absent."""
    if base == config:
        return
    if isinstance(base, list) and isinstance(config, list):
        for at in range(len(base), len(config)) if base and isinstance(base[-1], dict) else ():
            yield f"{path}.{at}", ANOTHER
            base = [*base, base[-1]]
        base, config = dict(enumerate(base)), dict(enumerate(config))
    if not (isinstance(base, dict) and isinstance(config, dict)):
        yield path, config
        return
    for key in base | config:
        yield from _changes(base.get(key, ABSENT), config.get(key, ABSENT), f"{path}.{key}".lstrip("."))


def test_a_changed_script_is_a_live_change() -> None:
    """For the keys that no update changes, docs/changes.md has the library's answer to each flag."""
    first = render()
    other = render_cluster_config(settings=read_settings({}), ids=ids(bundle_sha256="f" * 64))
    assert other["HeadNode"]["CustomActions"].pop("OnNodeUpdated")["Args"][-1] == f"bundle-sha256={'f' * 64}"
    assert first["HeadNode"]["CustomActions"].pop("OnNodeUpdated")["Args"][-1] == f"bundle-sha256={'e' * 64}"
    assert other["HeadNode"] == first["HeadNode"]


def test_compute_nodes_have_time_for_their_bootstrap() -> None:
    def timeouts(budget_s: int) -> Config:
        config = render_cluster_config(settings=read_settings({}), ids=ids(bootstrap_budget_s=budget_s))
        found: Config = config["DevSettings"]["Timeouts"]
        return found

    assert timeouts(560) == {"HeadNodeBootstrapTimeout": 2700, "ComputeNodeBootstrapTimeout": 2660}
    assert timeouts(30) == {"HeadNodeBootstrapTimeout": 2700, "ComputeNodeBootstrapTimeout": 2130}


# What the rules and the schema let through and ParallelCluster's validators would not.
def _changed(path: str, value: Any, **flags: str) -> Config:
    config = render(**flags)
    node: Any = config
    *parents, last = path.split(".")
    for part in parents:
        node = node[int(part)] if part.isdigit() else node[part]
    node[last] = value
    return config


QUEUE, SLURM = "Scheduling.SlurmQueues.0", "Scheduling.SlurmSettings"
DIRECTORY = "tests/unit/stacks/people/directory.yaml"
SUBNETS = ["subnet-0bbbbbbbbbbbbbbbb", "subnet-0aaaaaaaaaaaaaaaa"]
STATIC = {"min_nodes": "2", "placement_group": "off"}
ZFS: Config = {"Name": "a", "StorageType": "FsxOpenZfs", "MountDir": "/a"}
ZFS["FsxOpenZfsSettings"] = {"VolumeId": "fsvol-0123456789abcdef0"}
GROUPED = {"family": "m6i", "instance_type": "m6i.large", "placement_group": "mine"}
BLOCK = {"capacity": f"capacity-block:{CR}"}
ELSEWHERE = {
    "ExternalSlurmdbd": {"Host": "db"},
    "MungeKeySecretArn": "arn:aws:secretsmanager:us-east-1:123456789012:secret:munge-AbCdEf",
}
LONG = {"cluster_name": "a" * 41}
PARTITION = {"PartitionName": "mine", "Nodes": "ALL", "ExclusiveUser": False}


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (_changed("SharedStorage.1.MountDir", "/neuron_shared /efs"), "`/neuron_shared /efs` is two paths"),
        (_changed("SharedStorage.1.MountDir", "/fsx"), "/fsx is mounted 2 times"),
        (_changed("SharedStorage.1.MountDir", "/scratch"), "/scratch is mounted 2 times"),
        (_changed("SharedStorage.1.MountDir", "/fsx/efs"), "/fsx/efs is within /fsx"),
        (_changed("SharedStorage.1.EfsSettings", {"FileSystemId": "fs-0dddddddddddddddd"}), "listed 2 times"),
        (_changed("SharedStorage", [ZFS, ZFS | {"MountDir": "/b"}]), "fsvol-0123456789abcdef0 is listed"),
        (_changed(f"{QUEUE}.Name", "default"), "the name default"),
        (_changed(f"{QUEUE}.Name", "a" * 26), "25 at most"),
        (_changed(f"{QUEUE}.Networking", {"SubnetIds": [SUBNETS[0]]}), "requires PlacementGroup.Enabled"),
        (_changed(f"{QUEUE}.Networking.SubnetIds", SUBNETS), "one subnet, or efa: false"),
        (_changed(f"{QUEUE}.Networking.SubnetIds", SUBNETS, **GROUPED), "or placement_group: off"),
        (_changed(f"{QUEUE}.ComputeResources.0.MinCount", 3), "MinCount 3 is above MaxCount 2"),
        (_changed(f"{QUEUE}.ComputeResources.0.MinCount", 1, **BLOCK), "MaxCount > 0, not 1 and 2"),
        (_changed(f"{QUEUE}.Networking.PlacementGroup", {"Enabled": True}, **BLOCK), "no placement group"),
        (_changed(f"{QUEUE}.CapacityType", "CAPACITY_BLOCK", **STATIC), "CapacityReservationId"),
        (_changed("Scheduling.SlurmQueues.1.Name", "gpu", cpu_queue="on"), "2 queues are named gpu"),
        (_changed(f"{SLURM}.ExternalSlurmdbd", {"Host": "db"}, accounting="new"), "takes one of them"),
        (_changed(f"{SLURM}.ExternalSlurmdbd", {"Host": "db"}), "type: MungeKeySecretArn"),
        (_changed(SLURM, ELSEWHERE, **LONG), f"-c cluster_name={'a' * 40}"),
        (_changed("HeadNode.Imds", {"Secured": False}, directory=DIRECTORY), "HeadNode.Imds.Secured"),
        (_changed(f"{SLURM}.CustomSlurmSettings", [PARTITION], directory=DIRECTORY), "PartitionName=mine: "),
    ],
)  # fmt: skip
def test_a_config_that_breaks_a_rule_is_refused(config: Config, said: str) -> None:
    (problem,) = config_problems(config)
    assert said in problem


def test_fifty_queues_are_the_most() -> None:
    many = [queue() | {"Name": f"q{number}"} for number in range(51)]
    assert config_problems(_changed("Scheduling.SlurmQueues", many[:50])) == []
    assert "51 queues" in str(list(config_problems(_changed("Scheduling.SlurmQueues", many))))


def test_own_database_has_fair_share_of_accelerators(tmp_path: Path) -> None:
    overrides = tmp_path / "overrides.yaml"
    overrides.write_text("Scheduling: {SlurmSettings: {ExternalSlurmdbd: {Host: db, Port: 6819}}}")
    elsewhere = render(users=USERS, overrides=str(overrides))["Scheduling"]
    assert elsewhere["SlurmSettings"]["CustomSlurmSettings"][-1] == SHARED_CLUSTER_SETTINGS
    assert WEIGHTS in elsewhere["SlurmQueues"][0]["CustomSlurmSettings"]
    cpu = queue(users=USERS, accounting="new", family="m6i")
    assert WEIGHTS not in cpu["CustomSlurmSettings"], "no node has accelerators"


def test_users_share_nodes_of_shared_queues(tmp_path: Path) -> None:
    """Such a node is replaced when its tag changes, and its jobs name their GPUs in each step."""
    queues, users = tmp_path / "queues.yaml", tmp_path / "users.yaml"
    queues.write_text("open: {family: g5, shared: true, partition: {MaxTime: 1}}\nown: {family: m6i}\n")
    users.write_text("users: {alice: {uid: 5001}}")
    flags = {"queues": str(queues), "users": str(users), "cpu_queue": "on"}
    config = render(**flags)
    assert config_problems(config) == []
    found = {each["Name"]: each for each in config["Scheduling"]["SlurmQueues"]}
    partitions = {name: each.get("CustomSlurmSettings") for name, each in found.items()}
    one = {"ExclusiveUser": "YES"}
    assert partitions == {"gpu": one, "cpu": one, "open": {"MaxTime": 1, "ExclusiveUser": "NO"}, "own": one}
    assert {name for name, each in found.items() if "Tags" in each} == {"open"}
    environments = render_job_environments(config, read_settings({"family": "p4d", **flags}))
    ask = f"set -eu; {environments['open']}\necho $SHARED_NODES ${{SLURM_GPUS_PER_NODE-none}}"
    for given, seen in (({"SLURM_GPUS_ON_NODE": "4"}, "yes 4\n"), ({}, "yes none\n")):
        done = subprocess.run(["bash", "-c", ask], env=given, capture_output=True, text=True, check=True)
        assert done.stdout == seen
    assert not any("SHARED_NODES" in text for name, text in environments.items() if name != "open")


def test_users_share_nodes_in_one_way(tmp_path: Path) -> None:
    queues, users, overrides = (tmp_path / f"{name}.yaml" for name in ("queues", "users", "overrides"))
    queues.write_text("own: {family: m6i, partition: {exclusiveuser: false}}")
    users.write_text("users: {alice: {uid: 5001}}")
    setting = "CustomSlurmSettings: {exclusiveUser: 'NO'}"
    overrides.write_text(f"Scheduling: {{SlurmQueues: [{{Name: gpu, {setting}}}]}}")
    (own,) = (
        each for each in render(queues=str(queues))["Scheduling"]["SlurmQueues"] if each["Name"] == "own"
    )
    assert own["CustomSlurmSettings"] == {"exclusiveuser": False}  # one user
    for file, words in (
        (queues, "leave exclusiveuser out, or shared: true"),
        (overrides, "set it by `shared`"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            render(users=str(users), **{file.stem: str(file)})
