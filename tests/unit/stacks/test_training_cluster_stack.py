"""TrainingClusterStack: key, placement group, scripts, provider, cluster."""

import json
import re
import shlex
from collections.abc import Callable
from typing import Any

import pytest
from aws_cdk.assertions import Match, Template

from training_cluster.cluster.config import render_cluster_config
from training_cluster.cluster.resource_ids import placeholders
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.paths import ASSETS
from training_cluster.rules.context import read_settings

Synthesise = Callable[..., dict[str, Template]]
RECORD = ASSETS / "cluster_provider" / "record.py"


@pytest.fixture
def cluster(synthesise: Synthesise) -> Template:
    return synthesise()["TrainingClusterStack"]


def _config(template: Template) -> dict[str, Any]:
    """Return the config of the custom resource, with every reference replaced by a word."""
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
    assert set(config) == set(render_cluster_config(settings=read_settings({}), ids=ids))


def test_the_key_pair_is_ed25519_and_named_after_the_cluster(cluster: Template) -> None:
    cluster.has_resource_properties("AWS::EC2::KeyPair", {"KeyName": "training-key", "KeyType": "ed25519"})


@pytest.mark.parametrize(("os", "user"), [("ubuntu2404", "ubuntu"), ("alinux2023", "ec2-user")])
def test_the_output_connect_opens_a_login_shell_of_the_clusters_user(
    os: str, user: str, synthesise: Synthesise
) -> None:
    output = synthesise(family="m6i", os=os)["TrainingClusterStack"].to_json()["Outputs"]["Connect"]
    parts = output["Value"]["Fn::Join"][1]
    words = shlex.split("".join(part if isinstance(part, str) else "REFERENCE" for part in parts))
    assert words[:3] == ["aws", "ssm", "start-session"]
    assert words[-1] == f"command=sudo --login --user {user}"


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
                "S3Key": f"parallelcluster/{PCLUSTER_VERSION}/layers/aws-parallelcluster/lambda-layer.zip",
            },
            "CompatibleRuntimes": ["python3.12"],
        },
    )


def test_the_provider_gives_up_before_cloudformation_does(cluster: Template) -> None:
    machine = next(iter(cluster.find_resources("AWS::StepFunctions::StateMachine").values()))
    definition = json.dumps(machine["Properties"]["DefinitionString"])
    interval, attempts = (
        re.search(rf"{name}\W+(\d+)", definition) for name in ("IntervalSeconds", "MaxAttempts")
    )
    own_clock = re.search(r"_TIME_LIMIT = datetime.timedelta\(minutes=(\d+)\)", RECORD.read_text())
    assert interval and attempts and own_clock
    assert int(own_clock[1]) * 60 < int(attempts[1]) * int(interval[1]), (
        "the framework, which gives no reason, comes later"
    )
    assert int(own_clock[1]) <= 55, "CloudFormation's hour begins before, and a failure has to be saved"


def test_no_statement_allows_every_action_or_a_whole_service(synthesise: Synthesise) -> None:
    for template in synthesise().values():
        for kind in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"):
            for policy in template.find_resources(kind).values():
                for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
                    actions = statement["Action"]
                    for action in [actions] if isinstance(actions, str) else actions:
                        assert not action.endswith((":*", "*:*")), action
                        assert action != "*"


def test_another_cluster_has_another_stack_key_and_folder(synthesise: Synthesise) -> None:
    other = synthesise(cluster_name="b")["TrainingClusterStack"]
    other.has_resource_properties("AWS::EC2::KeyPair", {"KeyName": "b-key"})
    other.has_resource_properties(
        "Custom::CDKBucketDeployment", {"DestinationBucketKeyPrefix": "bootstrap/b"}
    )
    other.has_resource_properties("Custom::TrainingCluster", {"ClusterName": "b"})


def test_a_key_that_is_there_already_is_used(synthesise: Synthesise) -> None:
    cluster = synthesise(key_name="mine")["TrainingClusterStack"]
    cluster.resource_count_is("AWS::EC2::KeyPair", 0)
    assert _config(cluster)["HeadNode"]["Ssh"] == {"KeyName": "mine"}


def test_a_permissions_boundary_bounds_every_role(synthesise: Synthesise) -> None:
    arn = "arn:aws:iam::123456789012:policy/boundary"
    templates = synthesise(permissions_boundary=arn, login_nodes="1")
    roles = [role for t in templates.values() for role in t.find_resources("AWS::IAM::Role").values()]
    assert roles
    assert all(role["Properties"]["PermissionsBoundary"] == arn for role in roles)
    cluster = templates["TrainingClusterStack"]
    assert _config(cluster)["Iam"] == {"PermissionsBoundary": arn}


def test_tags_are_on_everything(synthesise: Synthesise) -> None:
    templates = synthesise(tags="team=nlp, project=gpt2")
    templates["NetworkStack"].has_resource_properties(
        "AWS::EC2::VPC", {"Tags": Match.array_with([{"Key": "team", "Value": "nlp"}])}
    )
    templates["StorageStack"].has_resource_properties(
        "AWS::S3::Bucket", {"Tags": Match.array_with([{"Key": "project", "Value": "gpt2"}])}
    )
    assert {"Key": "team", "Value": "nlp"} in _config(templates["TrainingClusterStack"])["Tags"]
    # Another tag would replace these two, and with them a key of that name, and the nodes' group.
    untagged = synthesise()["TrainingClusterStack"]
    for kind in ("AWS::EC2::KeyPair", "AWS::EC2::PlacementGroup"):
        assert templates["TrainingClusterStack"].find_resources(kind) == untagged.find_resources(kind)


def test_login_nodes_may_read_their_scripts_and_nothing_else(synthesise: Synthesise) -> None:
    cluster = synthesise(login_nodes="1")["TrainingClusterStack"]
    name = {"Fn::Join": ["", ["parallelcluster-training-login-", {"Ref": "AWS::Region"}]]}
    named = {"Properties": {"ManagedPolicyName": name}}
    (policy,) = cluster.find_resources("AWS::IAM::ManagedPolicy", named).values()
    (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
    assert statement["Action"] == "s3:GetObject"
    assert "/bootstrap/training/*" in str(statement["Resource"])


def test_accounting_is_a_stack_of_its_own_that_is_kept(synthesise: Synthesise) -> None:
    templates = synthesise(accounting="new")
    accounting = templates["AccountingStack"]
    (database,) = accounting.find_resources("AWS::RDS::DBCluster").values()
    accounting.has_resource_properties(
        "AWS::RDS::DBClusterParameterGroup",
        {"Parameters": {"require_secure_transport": "ON", "innodb_lock_wait_timeout": "900"}},
    )
    assert database["Properties"]["StorageEncrypted"] is True
    assert database["Properties"]["DeletionProtection"] is True
    # Releases with long-term support (Aurora guide, "LTS releases"); others live for about a year.
    assert re.match(r"8\.0\.mysql_aurora\.3\.(04|10)\.", database["Properties"]["EngineVersion"])
    (instance,) = accounting.find_resources("AWS::RDS::DBInstance").values()
    assert instance["Properties"]["AutoMinorVersionUpgrade"] is False
    (rule,) = accounting.find_resources("AWS::EC2::SecurityGroupIngress").values()
    assert (rule["Properties"]["FromPort"], rule["Properties"]["ToPort"]) == (3306, 3306)
    assert "TrainingCluster-Network" in str(rule["Properties"]["SourceSecurityGroupId"])
    found = _config(templates["TrainingClusterStack"])["Scheduling"]["SlurmSettings"]["Database"]
    assert found["UserName"] == "slurm"
    assert "AccountingStack" not in synthesise()


def test_the_database_is_in_the_networks_zone_and_one_beside_it_for_good(synthesise: Synthesise) -> None:
    """Fn::GetAZs knows zones with a default subnet only, and is asked anew at each update."""
    subnets = synthesise(accounting="new")["AccountingStack"].find_resources("AWS::EC2::Subnet").values()
    assert [each["Properties"]["AvailabilityZone"] for each in subnets] == [
        {"Fn::ImportValue": f"TrainingCluster-Network:{name}"} for name in ("ZoneName", "OtherZoneName")
    ]


def test_all_that_the_kept_database_needs_is_kept_with_it(synthesise: Synthesise) -> None:
    """Without its subnet group it could not stand, without its instance or its rule nobody could ask it."""
    resources = synthesise(accounting="new")["AccountingStack"].to_json()["Resources"]
    # Kept when it is deleted, and not when its creation failed: a second try must not find it.
    kept = {"DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"}
    found = {id_: {policy: each.get(policy) for policy in kept} for id_, each in resources.items()}
    assert found == dict.fromkeys(resources, kept), "nothing of it is safe to go"
    needed = {f"AWS::RDS::{part}" for part in ("DBCluster", "DBInstance", "DBSubnetGroup")}
    needed |= {"AWS::EC2::SecurityGroupIngress", "AWS::SecretsManager::Secret"}
    assert needed <= {each["Type"] for each in resources.values()}


@pytest.mark.slow
def test_an_own_database_is_used_with_its_port(synthesise: Synthesise) -> None:
    secret = "arn:aws:secretsmanager:us-east-1:123456789012:secret:slurm-AbCdEf"
    for given, uri in {
        "db.example.com": "db.example.com:3306",
        "db.example.com:33": "db.example.com:33",
    }.items():
        template = synthesise(accounting=given, accounting_secret=secret)["TrainingClusterStack"]
        found = _config(template)["Scheduling"]["SlurmSettings"]["Database"]
        assert found == {"Uri": uri, "UserName": "slurm", "PasswordSecretArn": secret}
