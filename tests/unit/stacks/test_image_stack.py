"""ImageStack: the build of the nodes' image, its rights, and the resources that remain."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Match, Template

from stacks.composition import add_stacks
from tests.unit.assets.cluster_image.image_fakes import VERSION
from tests.unit.stacks.image_stacks import BUCKET, NETWORK, add_image_stack, app, image_template, properties
from tests.unit.stacks.security_proofs import (
    App,
    attached_aws_policies,
    open_to_the_world,
    statements,
    wide_rights,
)
from tools.nag import DO_NOT_FAIL, Found, add_rules
from training_cluster.acknowledgements import flat
from training_cluster.catalog.families import family_names, load_base, load_family
from training_cluster.flags.account import CLUSTER_TAG, SHARED
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.image.lifecycle import KEPT_IMAGES, UNUSED_DAYS
from training_cluster.image.names import CONTENT_TAG, IMAGE_TAG, image_parameter
from training_cluster.rules.context import read_settings

Synthesise = Callable[..., dict[str, Template]]
IB = "AWS::ImageBuilder::"
NAME = f"training-gpu-ubuntu2404-{VERSION}"
AMI = "ami-0123456789abcdef0"


@pytest.fixture
def image() -> Template:
    return image_template()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ({}, None),
        ({"image": AMI}, None),
        ({"image": "build"}, f"TrainingCluster-Image-gpu-ubuntu2404-{VERSION}"),
        (
            {"image": "build", "os": "alinux2023", "cluster_name": "b"},
            f"TrainingCluster-Image-gpu-alinux2023-{VERSION}",
        ),
        ({"family": "p3dn"}, f"TrainingCluster-Image-volta-ubuntu2404-{VERSION}"),
        ({"family": "trn1", "image": "build"}, f"TrainingCluster-Image-neuron-ubuntu2404-{VERSION}"),
    ],
)
def test_each_recipe_and_system_has_a_stack_of_its_own_and_only_with_a_built_image(
    flags: dict[str, str], name: str | None
) -> None:
    stacks = {stack.node.id: stack for stack in add_stacks(cdk.App(), read_settings(flags))}
    assert (stacks["ImageStack"].stack_name if "ImageStack" in stacks else None) == name
    if name:
        waits_for = {each.node.id for each in stacks["TrainingClusterStack"].dependencies}
        assert waits_for == {"NetworkStack", "StorageStack", "ImageStack"}
        assert {each.node.id for each in stacks["ImageStack"].dependencies} == {
            "NetworkStack",
            "StorageStack",
        }


def test_a_release_with_another_parallelcluster_shares_no_name_with_this_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Clusters of both run side by side: neither takes the other's stack, recipe, logs or parameter."""

    def names() -> set[str]:
        stack = add_image_stack(app())
        resources = Template.from_stack(stack).to_json()["Resources"].values()
        named = {
            value
            for each in resources
            for key, value in each.get("Properties", {}).items()
            if key in ("Name", "LogGroupName") and isinstance(value, str)
        }
        assert {each["Type"] for each in resources} > {f"{IB}ImageRecipe", f"{IB}Component"}
        return named | {stack.stack_name, image_parameter(read_settings({}))}

    ours = names()
    monkeypatch.setattr("training_cluster.image.names.PCLUSTER_VERSION", "3.99.0")
    assert not names() & ours


def test_no_flag_of_a_cluster_changes_the_image_of_its_recipe() -> None:
    expected = image_template().to_json()
    for flags in (
        {"family": "p5"},
        {"family": "g6e", "nodes": "7", "capacity": "spot"},
        {"cluster_name": "b", "cpu_queue": "on", "login_nodes": "1", "on_busy": "drain"},
    ):
        assert image_template(**flags).to_json() == expected


def test_another_content_is_a_new_recipe_and_nothing_that_holds_a_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def resources() -> dict[str, Any]:
        found: dict[str, Any] = Template.from_stack(add_image_stack(app())).to_json()["Resources"]
        return found

    before = resources()
    assert resources() == before, "the same content is the same template"
    monkeypatch.setattr("training_cluster.image.content.build_image_bundle", lambda **_: b"another")
    after = resources()
    different = {after[id_]["Type"].removeprefix(IB) for id_ in after if after[id_] != before[id_]}
    # The role may fetch another bundle. The last three have the digest in their tags; the image is replaced
    # for its reference to the recipe.
    assert different == {"AWS::IAM::Role", "ImageRecipe", "Image", "ImagePipeline", "LifecyclePolicy"}


def test_the_recipe_starts_from_the_official_image_and_encrypts_its_disk(image: Template) -> None:
    recipe = properties(image, f"{IB}ImageRecipe")
    (parent,) = image.find_resources("Custom::ClusterImage")
    assert recipe["ParentImage"] == {"Fn::GetAtt": [parent, "ImageId"]}
    wanted = properties(image, "Custom::ClusterImage")
    del wanted["ServiceToken"]
    root_gib = load_base().image_recipes["gpu"].root_gib
    assert wanted == {
        "ServiceTimeout": "600",
        "Wanted": "official",
        "PclusterVersion": PCLUSTER_VERSION,
        "Os": "ubuntu2404",
        "Architecture": "x86_64",
        "RootGib": root_gib,
    }
    (disk,) = recipe["BlockDeviceMappings"]
    assert disk["DeviceName"] == "/dev/sda1"
    assert disk["Ebs"] == {
        "Encrypted": True,
        "DeleteOnTermination": True,
        "VolumeType": "gp3",
        "VolumeSize": root_gib,
    }
    # ami_cleanup.sh empties /tmp while Image Builder's program works.
    assert not recipe["WorkingDirectory"].startswith(("/tmp", "/var/tmp"))
    (other,) = properties(image_template(os="alinux2023"), f"{IB}ImageRecipe")["BlockDeviceMappings"]
    assert other["DeviceName"] == "/dev/xvda"


def test_an_image_fits_on_the_disk_of_every_family_that_takes_it() -> None:
    for name in family_names():
        family = load_family(name)
        assert load_base().image_recipes[family.image_recipe].root_gib <= family.compute_root_gib, name


def test_versions_are_image_builders_to_count(image: Template) -> None:
    """A name and version that was there once would be refused, after a rollback and after a new start."""
    assert properties(image, f"{IB}ImageRecipe")["Version"] == "1.0.x"
    for kind in ("Component", "ImageRecipe"):
        assert properties(image, f"{IB}{kind}")["Name"] == NAME


def test_the_instance_is_reached_by_nobody_and_stands_in_the_private_subnet(image: Template) -> None:
    built_on = properties(image, f"{IB}InfrastructureConfiguration")
    (group,) = image.find_resources("AWS::EC2::SecurityGroup")
    assert built_on["SubnetId"] == NETWORK["private_subnet_id"]
    assert built_on["SecurityGroupIds"] == [{"Fn::GetAtt": [group, "GroupId"]}]
    assert built_on["InstanceMetadataOptions"] == {"HttpTokens": "required", "HttpPutResponseHopLimit": 1}
    assert built_on["InstanceTypes"] == [load_base().image_recipes["gpu"].build_instance_type]
    assert built_on["TerminateInstanceOnFailure"] is True
    assert "SecurityGroupIngress" not in properties(image, "AWS::EC2::SecurityGroup")
    image.resource_count_is("AWS::EC2::SecurityGroupIngress", 0)


def test_no_flag_of_the_network_lets_nodes_reach_the_instance(image: Template) -> None:
    """Builds go on beside interface endpoints, whichever cluster's deploy asked for these."""
    assert image_template(endpoints="private").to_json() == image.to_json()


def test_logs_go_to_the_bucket_and_to_a_log_that_image_builder_may_write(image: Template) -> None:
    logs = properties(image, f"{IB}InfrastructureConfiguration")["Logging"]["S3Logs"]
    assert logs == {"S3BucketName": BUCKET, "S3KeyPrefix": f"logs/images/{NAME}"}
    image.has_resource_properties(
        "AWS::Logs::LogGroup", {"LogGroupName": f"/aws/imagebuilder/{NAME}", "RetentionInDays": 90}
    )
    (id_,) = image.find_resources("AWS::Logs::LogGroup", {"Properties": {"LogGroupName": Match.any_value()}})
    assert properties(image, f"{IB}Image")["LoggingConfiguration"] == {"LogGroupName": {"Ref": id_}}
    assert set(map(str, properties(image, f"{IB}ImagePipeline")["LoggingConfiguration"].values())) == {
        str({"Ref": id_})
    }


def test_rights_are_no_wider_than_what_each_needs(image: Template) -> None:
    proven = App(templates={"ImageStack": image.to_json()}, config={})
    assert wide_rights(proven) == []
    assert open_to_the_world(proven) == []
    everywhere = {
        action
        for each in statements(image.to_json()["Resources"])
        if each["Effect"] == "Allow" and flat(each.get("Resource", "")) == "*"
        for action in ([each["Action"]] if isinstance(each["Action"], str) else each["Action"])
    }
    channels = {each for each in everywhere if each.startswith(("ssmmessages:", "ec2messages:"))}
    assert everywhere - channels == {
        "ec2:DescribeImages",
        "ssm:UpdateInstanceInformation",
        "tag:GetResources",
    }
    assert attached_aws_policies(proven) == {"policy/service-role/AWSLambdaBasicExecutionRole"}


def test_the_instance_reads_its_own_bundle_and_writes_its_own_logs(image: Template) -> None:
    (role,) = image.find_resources(
        "AWS::IAM::Role", {"Properties": {"Description": "Of instances that build and test node images"}}
    ).values()
    (document,) = (each["PolicyDocument"] for each in role["Properties"]["Policies"])
    s3 = {
        flat(resource)
        for each in document["Statement"]
        if str(each["Action"]).startswith("s3:")
        for resource in (each["Resource"] if isinstance(each["Resource"], list) else [each["Resource"]])
    }
    source = {
        parameter["Name"]: flat(parameter["Value"][0])
        for parameter in properties(image, f"{IB}ImageRecipe")["Components"][0]["Parameters"]
    }["BundleSource"]
    arn = "arn:<AWS::Partition>:s3:::"
    assert s3 == {
        arn + source.removeprefix("s3://"),
        f"{arn}ec2imagebuilder*",
        f"{arn}{BUCKET}/logs/images/{NAME}/*",
    }


def test_the_ami_has_what_parallelcluster_looks_for(image: Template) -> None:
    (here,) = properties(image, f"{IB}DistributionConfiguration")["Distributions"]
    ami = here["AmiDistributionConfiguration"]
    assert ami["AmiTags"] == {
        "parallelcluster:version": PCLUSTER_VERSION,
        "parallelcluster:os": "ubuntu2404",
        "parallelcluster:build_status": "available",
        IMAGE_TAG: NAME,
        CLUSTER_TAG: SHARED,
    }
    assert "{{ imagebuilder:buildDate }}" in ami["Name"], "names of AMIs are unique"
    # By this the library's validator of V100 knows an official image, and refuses it.
    assert "AWS ParallelCluster AMI" not in ami["Description"]
    tagged = properties(image_template(tags="team=nlp"), f"{IB}DistributionConfiguration")
    assert tagged["Distributions"][0]["AmiDistributionConfiguration"]["AmiTags"]["team"] == "nlp"


def test_builds_publish_where_image_builder_may_write_and_the_cluster_reads(synthesise: Synthesise) -> None:
    templates = synthesise(image="build")
    (here,) = properties(templates["ImageStack"], f"{IB}DistributionConfiguration")["Distributions"]
    (published,) = here["SsmParameterConfigurations"]
    assert published["DataType"] == "aws:ec2:image"
    assert published["ParameterName"].startswith("/imagebuilder/")
    assert published["ParameterName"] == image_parameter(read_settings({}))
    parameters = templates["TrainingClusterStack"].to_json()["Parameters"].values()
    assert {
        "Type": "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>",
        "Default": published["ParameterName"],
    } in [{key: each[key] for key in ("Type", "Default")} for each in parameters]


def test_only_the_familys_queue_takes_the_built_image(synthesise: Synthesise) -> None:
    cluster = synthesise(image="build", cpu_queue="on")["TrainingClusterStack"]
    config = json.loads(flat(properties(cluster, "Custom::TrainingCluster")["ClusterConfiguration"]))
    queues = {queue["Name"]: queue.get("Image") for queue in config["Scheduling"]["SlurmQueues"]}
    assert queues["cpu"] is None
    assert queues["gpu"]["CustomAmi"].startswith("<SsmParameterValue")
    assert "CustomAmi" not in config["Image"]
    assert "Image" not in config["HeadNode"]


def test_an_image_of_ones_own_is_checked_before_the_cluster_changes(synthesise: Synthesise) -> None:
    cluster = synthesise(image=AMI)["TrainingClusterStack"]
    checked = properties(cluster, "Custom::ClusterImage")
    assert checked["Wanted"] == AMI
    assert checked["RootGib"] == load_family("p4d").compute_root_gib
    (check,) = cluster.find_resources("Custom::ClusterImage")
    (resource,) = cluster.find_resources("Custom::TrainingCluster").values()
    assert check in resource["DependsOn"]
    assert AMI in flat(resource["Properties"]["ClusterConfiguration"])
    assert not synthesise()["TrainingClusterStack"].find_resources("Custom::ClusterImage")


def test_what_a_cluster_may_run_on_outlives_its_replacement_and_its_stack(image: Template) -> None:
    kept = {"DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"}
    for kind in ("Image", "ImageRecipe", "Component"):
        (found,) = image.find_resources(f"{IB}{kind}").values()
        assert {policy: found.get(policy) for policy in kept} == kept, kind
    # With them an AMI goes whose id the parameter holds, when a deploy fails after its build.
    assert "DeletionSettings" not in properties(image, f"{IB}Image")


def test_what_builds_again_and_what_deletes_come_after_a_build_that_went_well(image: Template) -> None:
    (built,) = image.find_resources(f"{IB}Image")
    for kind in ("ImagePipeline", "LifecyclePolicy"):
        for each in image.find_resources(f"{IB}{kind}").values():
            assert built in each["DependsOn"]


def test_the_image_is_tested_at_a_deploy_and_by_the_pipeline(image: Template) -> None:
    for kind in ("Image", "ImagePipeline"):
        assert properties(image, f"{IB}{kind}")["ImageTestsConfiguration"] == {"ImageTestsEnabled": True}


@pytest.mark.parametrize(("flag", "schedule"), [("manual", None), ("monthly", "cron(0 3 1 * ? *)")])
def test_the_pipeline_builds_when_it_is_asked_unless_told_otherwise(flag: str, schedule: str | None) -> None:
    pipeline = properties(image_template(image_rebuild=flag), f"{IB}ImagePipeline")
    assert pipeline.get("Schedule", {}).get("ScheduleExpression") == schedule
    if schedule:
        # Without it, Image Builder builds only when a version is newer, and ours are all pinned.
        assert pipeline["Schedule"]["PipelineExecutionStartCondition"] == "EXPRESSION_MATCH_ONLY"


def test_old_images_go_and_none_that_somebody_launched_of_late(image: Template) -> None:
    policies = [each["Properties"] for each in image.find_resources(f"{IB}LifecyclePolicy").values()]
    rules = {}
    for policy in policies:
        assert policy["ResourceSelection"] == {"TagMap": {IMAGE_TAG: NAME}}
        (detail,) = policy["PolicyDetails"]
        assert detail["Action"] == {"Type": "DELETE", "IncludeResources": {"Amis": True, "Snapshots": True}}
        excluded = detail["ExclusionRules"]
        assert excluded["Amis"]["LastLaunched"] == {"Unit": "DAYS", "Value": UNUSED_DAYS}
        rules[detail["Filter"]["Type"]] = (detail["Filter"], excluded.get("TagMap"))
    assert rules["COUNT"] == ({"Type": "COUNT", "Value": KEPT_IMAGES}, None)
    tags = properties(image, f"{IB}Image")["Tags"]
    assert rules["AGE"] == (
        {"Type": "AGE", "Unit": "DAYS", "Value": UNUSED_DAYS},
        {CONTENT_TAG: tags[CONTENT_TAG]},
    )
    # By these the policies find the builds of the deploy, and of the pipeline.
    assert tags[IMAGE_TAG] == NAME
    assert properties(image, f"{IB}ImagePipeline")["ImageTags"] == {
        key: tags[key] for key in (IMAGE_TAG, CONTENT_TAG)
    }


def test_the_outputs_say_what_was_built_and_how_to_build_it_again(image: Template) -> None:
    outputs = {name: flat(each["Value"]) for name, each in image.to_json()["Outputs"].items()}
    assert outputs["Parameter"] == image_parameter(read_settings({}))
    assert "start-image-pipeline-execution" in outputs["BuildAgain"]
    assert "<ImagePipeline" in outputs["BuildAgain"]
    assert outputs["ImageId"].endswith(".ImageId>")
    assert outputs["Logs"] == f"/aws/imagebuilder/{NAME} in CloudWatch; logs/images/{NAME}/ in the bucket"
    assert f"{load_base().image_recipes['gpu'].usual_min} minutes" in outputs["UsualTime"]
    assert f"{IMAGE_TAG}={NAME}" in outputs["StaysAfterDestroy"]


def test_a_permissions_boundary_bounds_the_roles_of_the_image_stack(synthesise: Synthesise) -> None:
    arn = "arn:aws:iam::123456789012:policy/boundary"
    roles = synthesise(permissions_boundary=arn, image="build")["ImageStack"].find_resources("AWS::IAM::Role")
    assert roles
    assert all(role["Properties"]["PermissionsBoundary"] == arn for role in roles.values())


def test_every_finding_of_cdk_nag_has_its_reason_and_every_reason_its_finding(tmp_path: Path) -> None:
    whole = app(outdir=str(tmp_path), more_context=DO_NOT_FAIL)
    add_image_stack(whole)
    add_rules(whole)
    whole.synth()
    found = Found()
    found.read(tmp_path)
    assert found.problems == {}
    assert found.unused == []
