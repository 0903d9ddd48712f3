"""Cuts of stacks, and the published waits: what each cut spares, and that each wait names its source."""

from __future__ import annotations

import pytest

from bench.subjects.critical_path import Kind, Resource, critical_path
from bench.subjects.cuts import CUTS, cut
from bench.subjects.waits import Part, read_parts, total_s
from training_cluster.cluster.cluster import QUERY_INTERVAL

SECONDS = {
    "AWS::EC2::NatGateway": 100.0,
    "AWS::FSx::FileSystem": 300.0,
    "AWS::FSx::DataRepositoryAssociation": 200.0,
    "Custom::TrainingCluster": 600.0,
}


def resource(stack: str, id_: str, type_: str, **waits_for: Kind) -> Resource:
    waits = {name.replace("_", "/"): kind for name, kind in waits_for.items()}
    return Resource(stack=stack, id=id_, type=type_, waits_for=waits)


RESOURCES = {
    each.name: each
    for each in (
        resource("NetworkStack", "Vpc", "AWS::EC2::VPC"),
        resource("NetworkStack", "Nat", "AWS::EC2::NatGateway", NetworkStack_Vpc="reference"),
        resource("NetworkStack", "Route", "AWS::EC2::Route", NetworkStack_Nat="reference"),
        resource(
            "StorageStack",
            "Lustre",
            "AWS::FSx::FileSystem",
            NetworkStack_Vpc="reference",
            NetworkStack_Nat="stack",
            NetworkStack_Route="stack",
        ),
        resource(
            "StorageStack", "Link", "AWS::FSx::DataRepositoryAssociation", StorageStack_Lustre="reference"
        ),
        resource(
            "TrainingClusterStack",
            "Role",
            "AWS::IAM::Role",
            StorageStack_Lustre="stack",
            StorageStack_Link="stack",
        ),
        resource(
            "TrainingClusterStack",
            "Cluster",
            "Custom::TrainingCluster",
            NetworkStack_Route="stack",
            StorageStack_Lustre="reference",
            StorageStack_Link="stack",
            TrainingClusterStack_Role="explicit",
        ),
    )
}


@pytest.mark.parametrize(
    ("number", "path"),
    [
        (0, ["Vpc", "Nat", "Route", "Lustre", "Link", "Role", "Cluster"]),
        (1, ["Vpc", "Nat", "Route", "Lustre", "Role", "Cluster"]),
        (2, ["Vpc", "Lustre", "Role", "Cluster"]),
        (3, ["Vpc", "Lustre", "Cluster"]),
    ],
)
def test_each_cut_takes_its_wait_from_the_path(number: int, path: list[str]) -> None:
    found = critical_path(cut(RESOURCES, CUTS[:number]), SECONDS, otherwise_s=1)
    assert [step.resource.id for step in found] == path


def test_the_cluster_waits_for_its_way_out_whatever_is_cut() -> None:
    assert "NetworkStack/Route" in cut(RESOURCES, CUTS)["TrainingClusterStack/Cluster"].waits_for


def test_a_changed_script_takes_what_a_flag_takes_and_more() -> None:
    flag, script = ({each.name for each in read_parts(kind)} for kind in ("flag", "script"))
    assert flag < script


def test_every_part_of_a_wait_names_its_source() -> None:
    parts: list[Part] = [*read_parts("script"), *read_parts("node")]
    assert all(len(each.source) > 10 for each in parts)
    assert total_s(read_parts("node")) == 294


def test_the_poll_of_the_model_is_half_the_interval_of_the_provider() -> None:
    (poll,) = (each for each in read_parts("flag") if "poll" in each.name)
    assert poll.seconds * 2 == QUERY_INTERVAL.to_seconds()
