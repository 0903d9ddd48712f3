"""TrainingClusterStack: key, placement group, scripts, provider, cluster; AccountingStack."""

import itertools
import json
import re
import shlex

from ops.asset_code import asset_code
from stacks.composition import NEVER_RETAGGED
from tests.unit.stacks.app import EVERYTHING, SECRET, App
from training_cluster.acknowledgements import flat
from training_cluster.flags.given import GIVEN_FLAGS
from training_cluster.paths import ASSETS
from training_cluster.rules.context import read_settings
from training_cluster.stack_names import DEFAULT_CLUSTER, FORMER_DEFAULT, GUARD_TYPE

RECORD = ASSETS / "cluster_provider" / "record.py"
STACK = "TrainingClusterStack"


def test_connect_opens_the_clusters_users_shell(default: App, brought: App) -> None:
    for app, user in ((default, "ubuntu"), (brought, "ec2-user")):
        words = shlex.split(flat(app.templates[STACK]["Outputs"]["Connect"]["Value"]))
        assert words[:3] == ["aws", "ssm", "start-session"]
        assert words[-1] == f"command=sudo --login --user {user}"


def test_efa_nodes_have_a_cluster_placement_group(default: App) -> None:
    assert default.only("AWS::EC2::PlacementGroup")["Strategy"] == "cluster"


def test_the_guards_precede_all_else_and_know_names(default: App, everything: App) -> None:
    """So a refusal changes nothing, a key pair of somebody else is not touched, and each flag is recorded."""
    both = ((default, DEFAULT_CLUSTER), (everything, FORMER_DEFAULT))
    for (app, name), stack in itertools.product(both, (STACK, "NetworkStack")):
        names = {"Name": name, "Stack": STACK, "KeyPair": f"{name}-key"}
        assert asset_code("guard", "names").names.cluster_in(app.templates[STACK]) == name
        resources = app.templates[stack]["Resources"]
        (guard,) = (id_ for id_, each in resources.items() if each["Type"] == GUARD_TYPE)
        earlier = {id_ for id_, each in resources.items() if guard not in each.get("DependsOn", [])}
        assert all(id_.startswith("Guard") for id_ in earlier), earlier
        assert resources[guard]["Properties"]["Cluster"] == names
    asked = everything.only(GUARD_TYPE, STACK)
    assert flat(asked["ServiceToken"]) == "TrainingCluster-Network:GuardToken"
    assert asked["Flags"].items() < everything.templates[STACK]["Metadata"][GIVEN_FLAGS].items()
    assert asked["Flags"]["alarm_email"] == EVERYTHING["alarm_email"]
    assert read_settings({"key_name": "mine"}).names["KeyPair"] == ""


def test_scripts_are_there_first_and_never_pruned(default: App) -> None:
    """Pruning would delete the scripts of clusters beside this one."""
    deployments = default.resources("Custom::CDKBucketDeployment", STACK)
    assert {each["Prune"] for each in deployments.values()} == {False}
    resources = default.templates[STACK]["Resources"].values()
    (cluster,) = (each for each in resources if each["Type"] == "Custom::TrainingCluster")
    assert deployments.keys() <= set(cluster["DependsOn"])


def test_the_provider_gives_up_before_cloudformation_does(default: App) -> None:
    machine = default.resources("AWS::StepFunctions::StateMachine", STACK)
    definition = json.dumps([each["DefinitionString"] for each in machine.values()])
    interval, attempts = (
        re.search(rf"{name}\W+(\d+)", definition) for name in ("IntervalSeconds", "MaxAttempts")
    )
    own_clock = re.search(r"_TIME_LIMIT = datetime.timedelta\(minutes=(\d+)\)", RECORD.read_text())
    assert interval and attempts and own_clock
    # The framework, which gives no reason, comes later.
    assert int(own_clock[1]) * 60 < int(attempts[1]) * int(interval[1])
    assert int(own_clock[1]) <= 55, "CloudFormation's hour begins before, and a failure has to be saved"


def test_another_cluster_has_its_own_names(default: App, brought: App, everything: App) -> None:
    """128 characters (IAM quotas); the provider may attach no policy whose name begins otherwise."""
    assert default.only("AWS::EC2::KeyPair")["KeyName"] == f"{DEFAULT_CLUSTER}-key"
    assert default.only("Custom::TrainingCluster")["ClusterName"] == DEFAULT_CLUSTER
    assert brought.only("Custom::TrainingCluster")["ClusterName"] == "b"
    for app, folder in ((default, f"bootstrap/{DEFAULT_CLUSTER}"), (brought, "bootstrap/b")):
        prefixes = app.resources("Custom::CDKBucketDeployment").values()
        assert {each["DestinationBucketKeyPrefix"] for each in prefixes} == {folder}
    for app, cluster in ((everything, "training"), (brought, "b")):
        named = [e.get("ManagedPolicyName", "") for e in app.resources("AWS::IAM::ManagedPolicy").values()]
        for name in filter(None, map(flat, named)):
            assert name.startswith(f"parallelcluster-{cluster}-")
            assert len(name.replace("<AWS::Region>", "r" * 14)) - len(cluster) + 60 <= 128


def test_an_own_key_and_database_are_used(brought: App) -> None:
    assert brought.resources("AWS::EC2::KeyPair") == {}
    assert brought.config["HeadNode"]["Ssh"] == {"KeyName": "mine"}
    database = {"Uri": "db.example.com:3306", "UserName": "slurm", "PasswordSecretArn": SECRET}
    assert brought.config["Scheduling"]["SlurmSettings"]["Database"] == database
    assert "AccountingStack" not in brought.templates


def test_tags_are_on_everything_that_no_tag_replaces(brought: App) -> None:
    """Another tag would replace these two, and with them a key of that name, and the nodes' group."""
    assert set(NEVER_RETAGGED) == {"AWS::EC2::KeyPair", "AWS::EC2::PlacementGroup"}
    team, project = {"Key": "team", "Value": "nlp"}, {"Key": "project", "Value": "gpt2"}
    tagged = brought.resources("AWS::EC2::SecurityGroup").values()
    assert all(team in each["Tags"] and project in each["Tags"] for each in tagged)
    assert team in brought.config["Tags"]
    assert team not in brought.only("AWS::EC2::PlacementGroup").get("Tags", [])


def test_accounting_is_encrypted_for_nodes_and_kept(everything: App) -> None:
    """Without its subnet group it could not stand, without its instance or its rule nobody could ask it."""
    database = everything.only("AWS::RDS::DBCluster")
    assert database["BackupRetentionPeriod"] == 7
    assert database["StorageEncrypted"] is True
    assert database["DeletionProtection"] is True
    # Releases with long-term support (Aurora guide, "LTS releases"); others live for about a year.
    assert re.match(r"8\.0\.mysql_aurora\.3\.(04|10)\.", database["EngineVersion"])
    parameters = everything.only("AWS::RDS::DBClusterParameterGroup")["Parameters"]
    assert parameters == {"require_secure_transport": "ON", "innodb_lock_wait_timeout": "900"}
    (group,) = everything.resources("AWS::RDS::DBClusterParameterGroup")
    assert database["DBClusterParameterGroupName"] == {"Ref": group}
    assert everything.only("AWS::RDS::DBInstance")["AutoMinorVersionUpgrade"] is False
    rule = everything.only("AWS::EC2::SecurityGroupIngress", "AccountingStack")
    assert (rule["FromPort"], rule["ToPort"]) == (3306, 3306)
    assert "TrainingCluster-Network" in str(rule["SourceSecurityGroupId"])
    assert everything.config["Scheduling"]["SlurmSettings"]["Database"]["UserName"] == "slurm"
    assert EVERYTHING["accounting"] == "new"
    resources = everything.templates["AccountingStack"]["Resources"]
    # Kept when it is deleted, and not when its creation failed: a second try must not find it.
    kept = {"DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"}
    found = {id_: {policy: each.get(policy) for policy in kept} for id_, each in resources.items()}
    assert found == dict.fromkeys(resources, kept), "nothing of it is safe to go"
    needed = {f"AWS::RDS::{part}" for part in ("DBCluster", "DBInstance", "DBSubnetGroup")}
    needed |= {"AWS::EC2::SecurityGroupIngress", "AWS::SecretsManager::Secret"}
    assert needed <= {each["Type"] for each in resources.values()}
