"""ImageStack: the build of the nodes' image, its rights, and the resources that remain."""

import json
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template

from stacks.image_stack import ImageStack
from tests.unit.assets.cluster_image.image_fakes import VERSION
from tests.unit.stacks.app import AMI, OWN_NETWORK, App, Json, listed, statements
from training_cluster.acknowledgements import flat
from training_cluster.catalog.families import family_names, load_base, load_family
from training_cluster.flags.account import CLUSTER_TAG, SHARED
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.image.lifecycle import KEPT_IMAGES, UNUSED_DAYS
from training_cluster.image.names import CONTENT_TAG, IMAGE_TAG, image_parameter
from training_cluster.network.network import Network
from training_cluster.paths import ROOT
from training_cluster.rules.context import read_settings
from training_cluster.storage.storage import SharedStorage

IB = "AWS::ImageBuilder::"
STACK = "ImageStack"
NAME = f"training-gpu-ubuntu2404-{VERSION}"


@pytest.fixture
def of(everything: App) -> Any:
    """Return a function that returns the properties of the only resource of a type of Image Builder's."""
    return lambda kind: everything.only(f"{IB}{kind}")


def _resources(**flags: str) -> dict[str, Any]:
    """Return the resources of the stack with the names of a network and of storage."""
    app = cdk.App(context=json.loads((ROOT / "cdk.json").read_text())["context"])
    others = cdk.Stack(app, "Others")
    bucket = s3.Bucket.from_bucket_name(others, "Bucket", "training-data")
    storage = SharedStorage(bucket=bucket, lustre_id="fs-1", efs_id="fs-2")
    ids = {"node_security_group_id": "sg-0123456789abcdef0", "guard_token": "any", **OWN_NETWORK}
    network = Network(others, "Network", **ids)  # type: ignore[arg-type]
    settings = read_settings({"image": "build", **flags})
    stack = ImageStack(app, STACK, settings=settings, network=network, storage=storage)
    found: dict[str, Any] = Template.from_stack(stack).to_json()["Resources"]
    return found


def test_the_image_changes_with_its_content_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    before = _resources()
    other = {"family": "g6e", "nodes": "7", "capacity": "spot", "cluster_name": "b", "cpu_queue": "on"}
    assert _resources(**other, login_nodes="1", endpoints="private") == before
    monkeypatch.setattr("training_cluster.image.content.build_image_bundle", lambda **_: b"another")
    after = _resources()
    different = {after[id_]["Type"].removeprefix(IB) for id_ in after if after[id_] != before[id_]}
    # The role may fetch another bundle. The last three have the digest in their tags; the image is replaced
    # for its reference to the recipe. None of them holds a name.
    assert different == {"AWS::IAM::Role", "ImageRecipe", "Image", "ImagePipeline", "LifecyclePolicy"}


def test_the_recipe_starts_from_the_official_image(everything: App, of: Any) -> None:
    (id_,) = everything.resources(f"{IB}ImageRecipe")
    assert of("Image")["ImageRecipeArn"] == {"Fn::GetAtt": [id_, "Arn"]}
    recipe, root_gib = of("ImageRecipe"), load_base().image_recipes["gpu"].root_gib
    (parent,) = everything.resources("Custom::ClusterImage")
    assert recipe["ParentImage"] == {"Fn::GetAtt": [parent, "ImageId"]}
    wanted = {
        key: value for key, value in everything.only("Custom::ClusterImage").items() if "Service" not in key
    }
    assert wanted == {
        "Wanted": "official",
        "PclusterVersion": PCLUSTER_VERSION,
        "Os": "ubuntu2404",
        "Architecture": "x86_64",
        "RootGib": root_gib,
    }
    (disk,) = recipe["BlockDeviceMappings"]
    assert (disk["DeviceName"], disk["Ebs"]["VolumeSize"]) == ("/dev/sda1", root_gib)
    # ami_cleanup.sh empties /tmp while Image Builder's program works.
    assert not recipe["WorkingDirectory"].startswith(("/tmp", "/var/tmp"))
    # A name and version that was there once would be refused, after a rollback and after a new start.
    assert recipe["Version"] == "1.0.x"
    assert recipe["Name"] == of("Component")["Name"] == NAME


def test_amazon_linux_boots_from_another_device() -> None:
    (recipe,) = (each for each in _resources(os="alinux2023").values() if each["Type"] == f"{IB}ImageRecipe")
    assert [each["DeviceName"] for each in recipe["Properties"]["BlockDeviceMappings"]] == ["/dev/xvda"]


def test_an_image_fits_every_family_that_takes_it() -> None:
    for name in family_names():
        family = load_family(name)
        assert load_base().image_recipes[family.image_recipe].root_gib <= family.compute_root_gib, name


def test_nobody_reaches_the_instance_that_builds(everything: App, of: Any) -> None:
    built_on = of("InfrastructureConfiguration")
    ((group, properties),) = everything.resources("AWS::EC2::SecurityGroup", STACK).items()
    assert flat(built_on["SubnetId"]) == "TrainingCluster-Network:PrivateSubnetId"
    assert built_on["SecurityGroupIds"] == [{"Fn::GetAtt": [group, "GroupId"]}]
    assert built_on["InstanceTypes"] == [load_base().image_recipes["gpu"].build_instance_type]
    assert built_on["TerminateInstanceOnFailure"] is True
    assert "SecurityGroupIngress" not in properties
    assert everything.resources("AWS::EC2::SecurityGroupIngress", STACK) == {}


def test_rights_are_no_wider_than_needed(everything: App) -> None:
    allowed = [e for e in statements(everything.templates[STACK]["Resources"]) if e["Effect"] == "Allow"]
    everywhere = {
        action
        for each in allowed
        if flat(each.get("Resource", "")) == "*"
        for action in listed(each["Action"])
        if not action.startswith(("ssmmessages:", "ec2messages:"))
    }
    assert everywhere == {"ec2:DescribeImages", "ssm:UpdateInstanceInformation", "tag:GetResources"}


def test_the_instance_reads_its_own_bundle_alone(everything: App, of: Any) -> None:
    (role,) = (
        each
        for each in everything.resources("AWS::IAM::Role", STACK).values()
        if each.get("Description") == "Of instances that build and test node images"
    )
    resources = {
        flat(resource)
        for each in statements(role["Policies"])
        if str(each["Action"]).startswith("s3:")
        for resource in listed(each["Resource"])
    }
    parameters = of("ImageRecipe")["Components"][0]["Parameters"]
    source = {each["Name"]: flat(each["Value"][0]) for each in parameters}["BundleSource"]
    arn, bucket = "arn:<AWS::Partition>:s3:::", "TrainingCluster-Storage:BucketName"
    assert resources == {
        arn + source.removeprefix("s3://"),
        f"{arn}ec2imagebuilder*",
        f"{arn}{bucket}/logs/images/{NAME}/*",
    }
    logs = of("InfrastructureConfiguration")["Logging"]["S3Logs"]
    groups = everything.resources("AWS::Logs::LogGroup", STACK).values()
    assert f"/aws/imagebuilder/{NAME}" in [each.get("LogGroupName") for each in groups]
    assert (flat(logs["S3BucketName"]), logs["S3KeyPrefix"]) == (bucket, f"logs/images/{NAME}")


def test_the_ami_has_what_parallelcluster_looks_for(of: Any) -> None:
    (here,) = of("DistributionConfiguration")["Distributions"]
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
    (published,) = here["SsmParameterConfigurations"]
    assert published["DataType"] == "aws:ec2:image"
    assert published["ParameterName"] == image_parameter(read_settings({}))


def test_only_the_familys_queue_takes_the_built_image(everything: App) -> None:
    queues = {queue["Name"]: queue.get("Image") for queue in everything.queues}
    assert queues["cpu"] is None
    assert queues["gpu"]["CustomAmi"].startswith("<SsmParameterValue")
    assert "CustomAmi" not in everything.config["Image"]
    assert "Image" not in everything.config["HeadNode"]


def test_an_own_image_is_checked_first(brought: App) -> None:
    checked = brought.only("Custom::ClusterImage")
    assert (checked["Wanted"], checked["RootGib"]) == (AMI, load_family("p4d").compute_root_gib)
    (check,) = brought.resources("Custom::ClusterImage")
    resources = brought.templates["TrainingClusterStack"]["Resources"].values()
    (cluster,) = (each for each in resources if each["Type"] == "Custom::TrainingCluster")
    assert check in cluster["DependsOn"]
    assert brought.queues[0]["Image"] == {"CustomAmi": AMI}


def test_what_clusters_run_on_outlives_the_stack(everything: App) -> None:
    kept = {"DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"}
    resources = {each["Type"]: each for each in everything.templates[STACK]["Resources"].values()}
    for kind in ("Image", "ImageRecipe", "Component"):
        found = resources[f"{IB}{kind}"]
        assert {policy: found.get(policy) for policy in kept} == kept, kind
    # With them an AMI goes whose id the parameter holds, when a deploy fails after its build.
    assert "DeletionSettings" not in resources[f"{IB}Image"]["Properties"]
    (built,) = everything.resources(f"{IB}Image")
    for each in everything.templates[STACK]["Resources"].values():
        if each["Type"] in (f"{IB}ImagePipeline", f"{IB}LifecyclePolicy"):
            assert built in each["DependsOn"]
        if each["Type"] in (f"{IB}Image", f"{IB}ImagePipeline"):
            assert each["Properties"]["ImageTestsConfiguration"] == {"ImageTestsEnabled": True}


def test_the_pipeline_builds_by_itself_only_when_told(of: Any) -> None:
    schedule = of("ImagePipeline")["Schedule"]
    assert schedule["ScheduleExpression"] == "cron(0 3 1 * ? *)"
    # Without it, Image Builder builds only when a version is newer, and ours are all pinned.
    assert schedule["PipelineExecutionStartCondition"] == "EXPRESSION_MATCH_ONLY"
    (manual,) = (each for each in _resources().values() if each["Type"] == f"{IB}ImagePipeline")
    assert "Schedule" not in manual["Properties"]


def test_old_images_go_but_none_launched_of_late(everything: App, of: Any) -> None:
    rules: dict[str, Json] = {}
    for policy in everything.resources(f"{IB}LifecyclePolicy").values():
        assert policy["ResourceSelection"] == {"TagMap": {IMAGE_TAG: NAME}}
        (detail,) = policy["PolicyDetails"]
        assert detail["Action"] == {"Type": "DELETE", "IncludeResources": {"Amis": True, "Snapshots": True}}
        excluded = detail["ExclusionRules"]
        assert excluded["Amis"]["LastLaunched"] == {"Unit": "DAYS", "Value": UNUSED_DAYS}
        rules[detail["Filter"]["Type"]] = (detail["Filter"], excluded.get("TagMap"))
    assert rules["COUNT"] == ({"Type": "COUNT", "Value": KEPT_IMAGES}, None)
    tags = of("Image")["Tags"]
    age = {"Type": "AGE", "Unit": "DAYS", "Value": UNUSED_DAYS}
    assert rules["AGE"] == (age, {CONTENT_TAG: tags[CONTENT_TAG]})
    # By these the policies find the builds of the deploy, and of the pipeline.
    assert tags[IMAGE_TAG] == NAME
    assert of("ImagePipeline")["ImageTags"] == {key: tags[key] for key in (IMAGE_TAG, CONTENT_TAG)}
