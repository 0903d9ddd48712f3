"""Queues that do not go together, each refused with what to type."""

from pathlib import Path

import pytest

from training_cluster.pcluster.check import checked_config
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings

CR = "cr-0123456789abcdef0"
MIXED = "a: {compute_resources: [{name: x, family: g5}, {name: y, instance_types: g5.12xlarge}]}"
MANY = "a: {family: p5, efa: false, nodes: 1100}"
RESERVED = f"a: {{capacity: spot, compute_resources: [{{name: x, family: g5, reservation: {CR}}}]}}"
TYPES = f"a: {{instance_types: [g5.12xlarge, g6.12xlarge], capacity: 'reservation:{CR}'}}"


REFUSED = f"""
# gpu: {{family: g5}} // gpu is the queue of the flags or of cpu_queue already // -c queue_name=
# a: {{instance_types: m7g.4xlarge}} // a: m7g.4xlarge is arm64, and p4d.24xlarge x86_64
instance_type=m7g.4xlarge head_node_type=m6i.xlarge # // head_node_type=m6i.xlarge is x86_64
instance_type=m7g.4xlarge image=build # // image=build: its content is made for x86_64
# a: {{instance_types: [m7i.4xlarge, m7i.8xlarge]}} // these have 16, 32 // below compute_resources
# {MIXED} // different accelerators (g5.48xlarge 8, g5.12xlarge 4) // --partition a,b
# {MANY} // take 35202 private addresses // has 32699 // up to 32, one for each // without `efa: false`
# a: {{family: hpc7a, capacity: spot}} // EC2 does not sell hpc7a.96xlarge as spot
# a: {{family: g5, allocation_strategy: capacity-optimized}} // not for capacity ondemand // prioritized
# a: {{family: g5, image: build}} // image: build: this cluster builds no image
image=build # a: {{family: m7i, image: build}} // builds an image for gpu nodes, and these are cpu
# a: {{family: p3dn}} // the official image does not run on p3dn.24xlarge
queue_name=b nodes=7 # b: {{family: g5, nodes: 5}} // nodes=7: the queue b of
# a: {{family: g5, shared: true}} // a: shared: true: several users share a node // -c users=FILE
# a: {{family: trn1, shared: true}} // cannot keep jobs off each other's NeuronCores
# {RESERVED} // x: reservation: spot nodes use none
# {TYPES} // {CR} is of one instance type, and the queue has g5.12xlarge, g6.12xlarge
"""
"""Flags, a file of queues, and parts of the message."""


@pytest.mark.parametrize("line", REFUSED.strip().splitlines())
def test_queues_that_do_not_go_together_are_refused(tmp_path: Path, line: str) -> None:
    given, *words = line.split(" // ")
    flags, _, text = given.partition("#")
    file = tmp_path / "queues.yaml"
    file.write_text(text)
    queues = {"queues": str(file)} if text.strip() else {}
    with pytest.raises(ConfigurationError) as raised:
        checked_config(read_settings(dict(each.split("=") for each in flags.split()) | queues))
    assert [word for word in words if word not in str(raised.value)] == []


def test_queues_of_one_recipe_share_the_built_image(tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text("a: {family: g5, image: build}")
    found = read_settings({"family": "p5", "image": "build", "queues": str(file)})
    assert [each.image for each in found.all_queues] == ["build", "build"]
