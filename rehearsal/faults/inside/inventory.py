"""Inventory of the local AWS, which shows what a case left behind or removed; runs in .venv-pcluster."""

from collections.abc import Callable, Iterator
from typing import Any

import boto3

_LOGS = "logs/"
_GONE = {"shutting-down", "terminated"}


class Inventory:
    """Lists of the resources that a cluster could leave behind, and of the data that must remain.

    Args:
        bystander: name of a cluster that no case may change.
        bucket: name of the bucket of data.
    """

    def __init__(self, *, bystander: str, bucket: str) -> None:
        self._bystander, self._bucket = bystander, bucket
        services = "cloudformation dynamodb ec2 efs fsx iam lambda route53 s3 ssm cloudwatch".split()
        self._client: dict[str, Any] = {name: boto3.client(name) for name in services}  # type: ignore[call-overload]

    def resources(self) -> set[str]:
        """List everything but data and log groups, which remain after a deletion, as documented."""
        found: list[Callable[[], Iterator[str]]] = [
            self._stacks,
            self._instances,
            self._network,
            self._others,
            self._artifacts,
        ]
        return {each for collect in found for each in collect()}

    def data(self) -> set[str]:
        """List file systems, the bucket's objects, and the bystander, each with its state."""
        systems = [
            f"{service} {system['FileSystemId']}"
            for service in ("fsx", "efs")
            for system in self._all(service, "describe_file_systems", "FileSystems")
        ]
        return {
            *systems,
            *(f"object {o['Key']} {o['ETag']}" for o in self._objects(self._bucket) if not _is_log(o)),
            self._other_cluster(),
        }

    def _all(self, service: str, operation: str, key: str, **arguments: Any) -> list[dict[str, Any]]:
        client = self._client[service]
        if client.can_paginate(operation):
            pages = client.get_paginator(operation).paginate(**arguments)
            return [item for page in pages for item in page.get(key, [])]
        return list(getattr(client, operation)(**arguments).get(key, []))

    def _objects(self, bucket: str) -> list[dict[str, Any]]:
        return self._all("s3", "list_objects_v2", "Contents", Bucket=bucket)

    def _other_cluster(self) -> str:
        stack = self._client["cloudformation"].describe_stacks(StackName=self._bystander)["Stacks"][0]
        return f"cluster {self._bystander} {stack['StackStatus']} since {stack.get('LastUpdatedTime')}"

    def _stacks(self) -> Iterator[str]:
        for stack in self._all("cloudformation", "describe_stacks", "Stacks"):
            yield f"stack {stack['StackName']}"

    def _instances(self) -> Iterator[str]:
        for reservation in self._all("ec2", "describe_instances", "Reservations"):
            for instance in reservation["Instances"]:
                if instance["State"]["Name"] not in _GONE:
                    yield f"instance {instance['InstanceId']}"

    def _network(self) -> Iterator[str]:
        kinds = {
            "describe_security_groups": ("SecurityGroups", "GroupId"),
            "describe_network_interfaces": ("NetworkInterfaces", "NetworkInterfaceId"),
            "describe_launch_templates": ("LaunchTemplates", "LaunchTemplateId"),
            "describe_volumes": ("Volumes", "VolumeId"),
            "describe_key_pairs": ("KeyPairs", "KeyName"),
            "describe_placement_groups": ("PlacementGroups", "GroupName"),
            "describe_addresses": ("Addresses", "AllocationId"),
        }
        for operation, (key, name) in kinds.items():
            for item in self._all("ec2", operation, key):
                if not (operation == "describe_volumes" and item.get("Attachments")):
                    yield f"{key} {item[name]}"

    def _others(self) -> Iterator[str]:
        kinds = {
            ("iam", "list_roles"): ("Roles", "RoleName"),
            ("iam", "list_instance_profiles"): ("InstanceProfiles", "InstanceProfileName"),
            ("lambda", "list_functions"): ("Functions", "FunctionName"),
            ("route53", "list_hosted_zones"): ("HostedZones", "Id"),
            ("ssm", "describe_parameters"): ("Parameters", "Name"),
            ("cloudwatch", "describe_alarms"): ("MetricAlarms", "AlarmName"),
            ("cloudwatch", "list_dashboards"): ("DashboardEntries", "DashboardName"),
        }
        for (service, operation), (key, name) in kinds.items():
            for item in self._all(service, operation, key):
                yield f"{key} {item[name]}"
        for table in self._client["dynamodb"].list_tables()["TableNames"]:
            yield f"table {table}"

    def _artifacts(self) -> Iterator[str]:
        for bucket in self._client["s3"].list_buckets()["Buckets"]:
            if bucket["Name"].startswith("parallelcluster-"):
                for item in self._objects(bucket["Name"]):
                    if "/clusters/" in item["Key"]:
                        yield f"object {item['Key']}"


def _is_log(item: dict[str, Any]) -> bool:
    return str(item["Key"]).startswith(_LOGS)
