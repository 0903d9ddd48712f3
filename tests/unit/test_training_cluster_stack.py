"""TrainingClusterStack: key, placement group, scripts, provider, cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from aws_cdk.assertions import Match, Template

from training_cluster.cluster_config import render_cluster_config
from training_cluster.resource_ids import placeholders
from training_cluster.settings import Settings

Synthesise = Callable[..., dict[str, Template]]


@pytest.fixture
def cluster(synthesise: Synthesise) -> Template:
    return synthesise()["TrainingClusterStack"]


def _config(template: Template) -> dict[str, Any]:
    """The config that the custom resource carries, with every reference replaced by a word."""
    resource = next(iter(template.find_resources("Custom::TrainingCluster").values()))
    joined = resource["Properties"]["ClusterConfiguration"]["Fn::Join"][1]
    config: dict[str, Any] = json.loads("".join(p if isinstance(p, str) else "reference" for p in joined))
    return config


def test_the_config_travels_as_one_json_string_with_its_types(cluster: Template) -> None:
    config = _config(cluster)
    resource = config["Scheduling"]["SlurmQueues"][0]["ComputeResources"][0]
    assert resource["MaxCount"] == 2
    assert resource["Efa"]["Enabled"] is True
    ids = placeholders(image_id=None, bootstrap_budget_s=0)
    assert set(config) == set(render_cluster_config(settings=Settings.from_context({}), ids=ids))


def test_the_key_pair_is_ed25519_and_named_after_the_cluster(cluster: Template) -> None:
    cluster.has_resource_properties("AWS::EC2::KeyPair", {"KeyName": "training-key", "KeyType": "ed25519"})


def test_efa_families_have_a_cluster_placement_group(synthesise: Synthesise) -> None:
    efa, no_efa = (synthesise(family=f)["TrainingClusterStack"] for f in ("p4d", "m6i"))
    efa.has_resource_properties("AWS::EC2::PlacementGroup", {"Strategy": "cluster"})
    no_efa.resource_count_is("AWS::EC2::PlacementGroup", 0)


def test_scripts_go_to_the_bucket_and_are_never_pruned(cluster: Template) -> None:
    cluster.has_resource_properties(
        "Custom::CDKBucketDeployment",
        {"DestinationBucketKeyPrefix": "bootstrap/training", "Prune": False},
    )


def test_the_cluster_waits_for_its_scripts(cluster: Template) -> None:
    resource = next(iter(cluster.find_resources("Custom::TrainingCluster").values()))
    assert any("ScriptsDeployment" in dependency for dependency in resource["DependsOn"])


def test_the_provider_uses_the_layer_that_aws_publishes_for_this_version(cluster: Template) -> None:
    cluster.has_resource_properties(
        "AWS::Lambda::LayerVersion",
        {
            "Content": {
                "S3Bucket": {"Fn::Join": ["", [{"Ref": "AWS::Region"}, "-aws-parallelcluster"]]},
                "S3Key": "parallelcluster/3.16.1/layers/aws-parallelcluster/lambda-layer.zip",
            },
            "CompatibleRuntimes": ["python3.12"],
        },
    )


def test_the_provider_gives_up_before_cloudformation_does(cluster: Template) -> None:
    machine = next(iter(cluster.find_resources("AWS::StepFunctions::StateMachine").values()))
    definition = json.dumps(machine["Properties"]["DefinitionString"])
    assert '\\\\\\"IntervalSeconds\\\\\\":30' in json.dumps(definition)
    assert '\\\\\\"MaxAttempts\\\\\\":96' in json.dumps(definition)


def test_no_statement_allows_every_action_or_a_whole_service(synthesise: Synthesise) -> None:
    for template in synthesise().values():
        for kind in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"):
            for policy in template.find_resources(kind).values():
                for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
                    actions = statement["Action"]
                    for action in [actions] if isinstance(actions, str) else actions:
                        assert not action.endswith((":*", "*:*")), action
                        assert action != "*"


def test_roles_are_passed_to_lambda_and_ec2_only(cluster: Template) -> None:
    cluster.has_resource_properties(
        "AWS::IAM::Policy",
        {
            "PolicyDocument": {
                "Statement": Match.array_with(
                    [
                        Match.object_like(
                            {
                                "Action": "iam:PassRole",
                                "Condition": {
                                    "StringEqualsIfExists": {
                                        "iam:PassedToService": ["lambda.amazonaws.com", "ec2.amazonaws.com"]
                                    }
                                },
                            }
                        )
                    ]
                )
            }
        },
    )


def test_another_cluster_has_another_stack_key_and_folder(synthesise: Synthesise) -> None:
    other = synthesise(cluster_name="b")["TrainingClusterStack"]
    other.has_resource_properties("AWS::EC2::KeyPair", {"KeyName": "b-key"})
    other.has_resource_properties(
        "Custom::CDKBucketDeployment", {"DestinationBucketKeyPrefix": "bootstrap/b"}
    )
    other.has_resource_properties("Custom::TrainingCluster", {"ClusterName": "b"})
