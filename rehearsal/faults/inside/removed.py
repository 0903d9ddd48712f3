"""Cases in which a person removes what the cluster or the provider needs; runs in .venv-pcluster."""

import re
from collections.abc import Callable

import boto3
from scene import Scene, delete, says, update


def _deleted_by_hand(scene: Scene) -> None:
    cloudformation = boto3.client("cloudformation")
    cloudformation.delete_stack(StackName=scene.stack.cluster_name)
    scene.stack.come_to_rest()
    scene.stack.deploy(scene.wanted)


def _deleted_after(poll: int) -> Callable[[Scene], None]:
    """Return an act in which a person deletes the cluster's stack after the nth poll of an update."""

    def act(scene: Scene) -> None:
        def delete() -> None:
            boto3.client("cloudformation").delete_stack(StackName=scene.stack.cluster_name)

        with scene.stack.framework.after_poll(poll, delete):
            scene.stack.deploy(scene.wanted)

    return act


def _made_anew(scene: Scene) -> None:
    """Let the update fail, run the command in its message, and let the next deploy create the cluster."""
    scene.stack.deploy(scene.wanted)
    try:
        says(scene, f"npx cdk destroy TrainingClusterStack -c cluster_name={scene.stack.cluster_name}")
    finally:
        scene.stack.destroy()


def _head_node_terminated(scene: Scene) -> None:
    ec2 = boto3.client("ec2")
    tags = {"cluster-name": scene.stack.cluster_name, "node-type": "HeadNode"}
    filters = [{"Name": f"tag:parallelcluster:{key}", "Values": [value]} for key, value in tags.items()]
    # Earlier cases of the same worker leave terminated head nodes, which EC2 lists for an hour.
    filters.append({"Name": "instance-state-name", "Values": ["running"]})
    (found,) = ec2.describe_instances(Filters=filters)["Reservations"]
    ec2.terminate_instances(InstanceIds=[found["Instances"][0]["InstanceId"]])
    _made_anew(scene)


def _empty_bucket(scene: Scene) -> None:
    """Empty ParallelCluster's bucket, all versions; here only the folder of this cluster."""
    s3, folder = boto3.client("s3"), f"/clusters/{scene.stack.cluster_name}-"
    names = [each["Name"] for each in s3.list_buckets()["Buckets"]]
    bucket = next(name for name in names if name.startswith("parallelcluster-"))
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
        for each in page.get("Versions", []):
            if folder in each["Key"]:
                s3.delete_object(Bucket=bucket, Key=each["Key"], VersionId=each["VersionId"])


def _bucket_emptied(scene: Scene) -> None:
    _empty_bucket(scene)
    _made_anew(scene)


def _bucket_emptied_and_deleted(scene: Scene) -> None:
    _empty_bucket(scene)
    scene.stack.destroy()


def _delete_fleet_item(scene: Scene) -> None:
    table = f"parallelcluster-{scene.stack.cluster_name}"
    boto3.client("dynamodb").delete_item(TableName=table, Key={"Id": {"S": "COMPUTE_FLEET"}})


def _fleet_item_deleted_and_deleted(scene: Scene) -> None:
    _delete_fleet_item(scene)
    scene.stack.destroy()


def _fleet_item_deleted(scene: Scene) -> None:
    """Let the update fail, and restore the item that its message names."""
    _delete_fleet_item(scene)
    scene.stack.deploy(scene.wanted)
    reason = says(scene, "COMPUTE_FLEET", "aws dynamodb put-item")
    table, item = re.findall(r"--table-name (\S+) --item '(.+?)'", reason)[0]
    typed = dict(re.findall(r"(\w+)=(\{S=[^}]+\})", item))  # in the AWS CLI's shorthand
    values = {name: {"S": value[3:-1]} for name, value in typed.items()}
    boto3.client("dynamodb").put_item(TableName=table, Item={"Id": values.pop("Id"), "Data": {"M": values}})
    scene.stack.come_to_rest()


def _parameter_deleted(scene: Scene) -> None:
    """Delete the progress parameter while the fleet is stopped for an update."""

    def delete() -> None:
        boto3.client("ssm").delete_parameter(Name=scene.stack.parameter)

    with scene.stack.framework.after_poll(1, delete):
        scene.stack.deploy(scene.wanted)
    scene.check(scene.stack.status == "UPDATE_COMPLETE")


CASES = {
    "the cluster was deleted by hand": update(_deleted_by_hand),
    "the cluster is deleted by hand while the fleet stops": update(_deleted_after(1)),
    "the cluster is deleted by hand while it is updated": update(_deleted_after(2)),
    "the head node was terminated": update(_head_node_terminated),
    "ParallelCluster's bucket was emptied": update(_bucket_emptied),
    "ParallelCluster's bucket was emptied, then the cluster is deleted": delete(_bucket_emptied_and_deleted),
    "the fleet's item was deleted, then the cluster is deleted": delete(_fleet_item_deleted_and_deleted),
    "the fleet's item was deleted": update(_fleet_item_deleted),
    "the progress parameter was deleted while the fleet is stopped": update(_parameter_deleted),
}
