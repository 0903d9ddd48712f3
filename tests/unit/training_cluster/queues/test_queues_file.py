"""The file of queues: what it becomes, and the message for each mistake in it."""

from pathlib import Path

import pytest

from tests.unit.sentences import assert_sentences
from tests.unit.training_cluster.conftest import Write
from training_cluster.cluster.fleet import compute_nodes
from training_cluster.cluster.zone_needs import zone_needs
from training_cluster.flags.settings import Settings
from training_cluster.pcluster.check import checked_config, config_before_deploy
from training_cluster.queues.file import read_queues
from training_cluster.queues.queue import Queue, make_queue
from training_cluster.rules.context import read_settings

CR = "cr-0123456789abcdef0"


def queue(path: str) -> Queue:
    """Return the only queue of a file."""
    ((name, entry),) = read_queues(path).items()
    return make_queue(name, entry)


def counts(found: Queue) -> tuple[int, int]:
    """Return the most and the least nodes of a queue."""
    return found.most_nodes, sum(map(found.least, found.resources))


def settings(path: str, **flags: str) -> Settings:
    return read_settings({"queues": path, **flags})


def test_a_family_alone_is_two_nodes_on_demand(write: Write) -> None:
    found = queue(write("big: {family: p5}"))
    assert (found.name, found.first.name, counts(found)) == ("big", "p5.48xlarge", (2, 0))
    assert (found.capacity_type, found.image, found.wants_new_placement_group) == (
        "ondemand",
        "official",
        True,
    )
    assert found.resources[0].name == "p5-48xlarge"
    assert found.tells_slurm_topology
    both = queue(write("a: {instance_types: [g6.12xlarge, g5.12xlarge], allocation_strategy: prioritized}"))
    assert [each.name for each in both.types] == ["g6.12xlarge", "g5.12xlarge"]
    assert both.has_efa
    one = queue(write("a: {instance_types: [g6.4xlarge, g5.4xlarge]}"))
    assert not one.has_efa
    assert not one.wants_new_placement_group
    path = write("a: {instance_types: c5.4xlarge, subnet_ids: [subnet-0123abcd, subnet-0123abce]}")
    *_, rendered = config_before_deploy(settings(path))["Scheduling"]["SlurmQueues"]
    (resource,) = rendered["ComputeResources"]
    assert (resource["Instances"], "InstanceType" in resource) == ([{"InstanceType": "c5.4xlarge"}], False)


def test_compute_resources_are_items_with_names(write: Write) -> None:
    found = queue(
        write(
            "prep:\n  compute_resources:\n"
            "    - {name: small, instance_types: c6i.4xlarge, nodes: 10}\n"
            "    - {name: large, instance_types: m7i.16xlarge, nodes: 2, min_nodes: 1}\n"
        )
    )
    assert [(each.name, found.least(each), each.nodes) for each in found.resources] == [
        ("small", 0, 10),
        ("large", 1, 2),
    ]
    assert counts(found) == (12, 1)


@pytest.mark.parametrize(
    ("resource", "addresses"),
    [
        ("{family: p5, nodes: 3}", 3),
        ("{family: p5, nodes: 3, efa: false}", 3 * 32),
        ("{instance_types: [p5.48xlarge, p5en.48xlarge], nodes: 3, efa: false}", 3 * 16),
    ],
)
def test_without_efa_every_network_card_has_an_address(write: Write, resource: str, addresses: int) -> None:
    config = config_before_deploy(settings(write(f"a: {resource}")))
    (_, found) = compute_nodes(config)
    assert found.most * found.addresses == addresses


def test_nodes_of_reservations_all_run(write: Write) -> None:
    found = queue(write(f"block: {{family: p5, nodes: 8, capacity: 'capacity-block:{CR}'}}"))
    assert (counts(found), found.reservation_id) == ((8, 8), CR)
    assert not found.wants_new_placement_group
    reserved = f"{{name: two, instance_types: g5.xlarge, reservation: {CR}}}"
    text = f"a: {{compute_resources: [{{name: one, instance_types: g5.xlarge}}, {reserved}]}}"
    _, one, two = compute_nodes(config_before_deploy(settings(write(text))))
    assert (one.kind, two.kind) == ("ondemand", "reservation")
    text = f"a: {{instance_types: [g5.12xlarge, g6.12xlarge], capacity: 'reservation:{GROUP}'}}"
    assert queue(write(text)).reservations == (GROUP,)
    text = f"""
a:
  capacity: reservation:{CR}
  placement_group: on
  compute_resources:
    - {{name: one, instance_types: g5.xlarge, nodes: 3}}
    - {{name: two, instance_types: g6.xlarge, reservation: '{GROUP}', placement_group: off}}
    - {{name: three, instance_types: g5.2xlarge, reservation: cr-0123456789abcdef1, placement_group: mine}}
"""
    found = queue(write(text))
    assert found.reservations == (CR, GROUP, "cr-0123456789abcdef1")
    assert found.wants_new_placement_group
    assert [each.own_placement_group for each in found.resources] == [None, "off", "mine"]


def test_values_of_yaml_are_those_of_slurm(write: Write) -> None:
    text = "a: {family: p5, placement_group: off, partition: {MaxTime: 12:00:00, PriorityTier: 10}}"
    found = queue(write(text))
    assert dict(found.partition) == {"MaxTime": "12:00:00", "PriorityTier": 10}
    assert (found.placement_group, found.wants_new_placement_group) == ("off", False)
    found = queue(write("a: {family: p5, efa: false}"))
    assert (found.has_efa, found.wants_new_placement_group) == (False, False)


MISTAKES = """
a:
A: {family: g5}
a: {famly: g5}
a: {family: p55}
a: {instance_types: [g5.13xlarge]}
a: {family: g5, instance_types: g5.xlarge}
a: {family: g5, exclusive: true, shared: true}
a: {instance_types: g5.xlarge, efa: true}
a: {family: g5, nodes: 0}
a: {family: g5, min_nodes: 3}
a: {family: g5, subnet_ids: subnet-1}
a: {family: g5, subnet_ids: [subnet-0123abcd, subnet-0123abcd]}
a: {family: g5, partition: fast}
a: {nodes: 3, compute_resources: [{name: x, family: g5}]}
a: {compute_resources: [{name: x}]}
a: {compute_resources: [{name: x, family: g5}, {name: x, family: g6}]}
a: {compute_resources: [{name: x, family: g5, reservation: mine}]}
a: {family: g5, reservation: cr-0123456789abcdef0}
a: {family: g5, capacity: 'capacity-block:arn:aws:resource-groups:us-east-1:1:group/x'}
a: {compute_resources: [{name: x, family: g5, placement_group: '?'}]}
a: {family: p6e-gb200}
burst: {family: g5, partition: {MaxTimes: '12:00:00'}}
burst: {family: g5, partition: {MaxTime: tomorrow}}
burst: {family: g5, partition: {MaxNodes: many}}
burst: {family: g5, partition: {QOS: NO}}
burst: {family: g5, partition: {State: DOWN}}
"""
"""A file of queues in each line."""


def test_a_mistake_is_named_with_what_is_allowed(write: Write, tmp_path: Path) -> None:
    def read(text: str) -> None:
        checked_config(settings(write(text)))

    assert_sentences("queues", ["", *MISTAKES.strip().splitlines()], read, tmp_path)


@pytest.mark.parametrize(
    ("keys", "group"),
    [
        ("family: p5", True),
        ("family: g5", True),
        ("family: p5, capacity: spot", True),
        ("family: g5, capacity: spot", False),
        ("family: g5, capacity: spot, efa: true", True),
        ("family: g5, capacity: spot, placement_group: on", True),
        ("instance_types: [g6.12xlarge, g5.12xlarge]", False),
        ("instance_types: [g6.12xlarge, g5.12xlarge], placement_group: on", True),
        ("compute_resources: [{name: a, family: g5}, {name: b, family: g6}]", False),
    ],
)
def test_a_group_is_not_in_capacitys_way(write: Write, keys: str, group: bool) -> None:
    found = queue(write(f"a: {{{keys}}}"))
    assert (found.has_efa, found.wants_new_placement_group) == (True, group)


def test_queue_name_takes_a_queue_of_the_file(write: Write) -> None:
    found = settings(
        write("z: {family: g5}\na: {family: g6}"), family="p4d", cpu_queue="on", queue_name="train"
    )
    assert [each.name for each in found.all_queues] == ["train", "cpu", "z", "a"]
    assert sum(each.most_nodes for each in found.all_queues) == 2 + 4 + 2 + 2
    types = zone_needs(found, config_before_deploy(found))["InstanceTypes"]
    assert {"p4d.24xlarge", "m6i.16xlarge", "g5.48xlarge", "g6.48xlarge"} < set(types)
    text = """
a: {family: g6, image: ami-0123456789abcdef0}
b: {instance_types: [g5.12xlarge, g6.12xlarge], nodes: 5}
"""
    found = settings(write(text), queue_name="b")
    assert [each.name for each in found.all_queues] == ["b", "a"]
    assert (found.family, found.compute_type, found.nodes) == ("g5", "g5.12xlarge", 5)
    assert [each.name for each in found.first_queue.types] == ["g5.12xlarge", "g6.12xlarge"]
    assert read_settings(found.model_dump(mode="json", exclude_defaults=True)) == found
    assert settings(write(text), queue_name="a").node_image == "ami-0123456789abcdef0"


GROUP = "arn:aws:resource-groups:us-east-1:123456789012:group/mine"


def test_the_zone_suits_all_queues_without_subnets(write: Write) -> None:
    text = f"""
a: {{instance_types: [g5.12xlarge, g6.12xlarge], capacity: 'reservation:{GROUP}'}}
b:
  compute_resources:
    - {{name: one, instance_types: g5.xlarge}}
    - {{name: two, instance_types: g6.xlarge, reservation: {CR}}}
far: {{family: p5, capacity: 'capacity-block:cr-0123456789abcdef1', subnet_ids: subnet-0123456789abcdef0}}
"""
    found = settings(write(text))
    needs = zone_needs(found, config_before_deploy(found))
    assert needs["Reservations"] == [
        {"Id": GROUP, "Queue": "a", "Types": ["g5.12xlarge", "g6.12xlarge"]},
        {"Id": CR, "Queue": "b", "Types": ["g6.xlarge"]},
    ]
    types = {"g5.12xlarge", "g6.12xlarge", "g5.xlarge", "g6.xlarge"}
    assert types <= {*needs["InstanceTypes"]}
    assert "p5.48xlarge" not in needs["InstanceTypes"]
