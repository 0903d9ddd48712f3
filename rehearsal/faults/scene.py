"""A separate cluster on a local AWS, beside the bystander, and a person's commands."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from rehearsal.faults.worker import Site
from training_cluster.paths import PCLUSTER_BIN
from training_cluster.stack_names import NETWORK_STACK, STORAGE_STACK, progress_parameter

_PCLUSTER = PCLUSTER_BIN / "pcluster"


@dataclass(frozen=True)
class Scene:
    """One cluster beside the bystander, and a person's commands for it."""

    site: Site
    name: str

    @property
    def stack_name(self) -> str:
        """Name of the stack that the app deploys for this cluster."""
        return f"TrainingClusterStack-{self.name}"

    def deploy(self, *options: str, **flags: str) -> bool:
        """Run `cdk deploy TrainingClusterStack`; return True if it succeeded.

        Raises:
            AssertionError: the deploy succeeded and changed nothing, so the case would show nothing.
        """
        before = self.site.events(self.stack_name)
        worked = self.site.succeeds(*self.deploy_command(*options, **flags))
        if worked and self.site.events(self.stack_name) == before:
            raise AssertionError(f"a deploy with {flags or 'the same flags'} changed nothing")
        return worked

    def deploy_command(self, *options: str, **flags: str) -> list[str]:
        """Return the arguments of `cdk` for a deploy with these context flags beside the cluster's own."""
        approved = ("--require-approval", "never")
        return ["deploy", "TrainingClusterStack", "--app", self._app(**flags), *approved, *options]

    def destroy(self, **flags: str) -> bool:
        """Run `cdk destroy TrainingClusterStack`; return True if it succeeded."""
        return self.site.succeeds("destroy", "TrainingClusterStack", "--app", self._app(**flags), "--force")

    def _app(self, **flags: str) -> str:
        given = {"cluster_name": self.name, "family": "m6i", **flags}
        return str(self.site.assemblies.of(given, self.site.environment))

    def pcluster(self, *arguments: str) -> str:
        """Run ParallelCluster's own command line and return its output.

        Raises:
            AssertionError: it failed; with what it printed.
        """
        done = subprocess.run(
            [_PCLUSTER, *arguments], check=False, env=self.site.environment, capture_output=True, text=True
        )
        if done.returncode:
            raise AssertionError(f"pcluster {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    def reasons(self, stack: str = "") -> list[str]:
        """Read the reasons of failed resources of a stack, by default our own, the newest first."""
        return self.site.reasons(stack or self.stack_name)

    def templates(self) -> dict[str, Any]:
        """Read the template of each stack that our deploy deploys."""
        read = self.site.client("cloudformation").get_template
        return {
            name: read(StackName=name)["TemplateBody"]
            for name in (NETWORK_STACK, STORAGE_STACK, self.stack_name, self.name)
        }

    def fleet(self) -> str:
        """Read the status of the compute fleet; NONE if there is no fleet."""
        client = self.site.client("dynamodb")
        try:
            item = client.get_item(
                TableName=f"parallelcluster-{self.name}", Key={"Id": {"S": "COMPUTE_FLEET"}}
            )
        except ClientError:
            return "NONE"
        return str(item["Item"]["Data"]["M"]["status"]["S"])

    def request(self) -> str:
        """Read the provider's current request: Create, Update or Delete."""
        ssm = self.site.client("ssm")
        try:
            value = ssm.get_parameter(Name=progress_parameter(self.stack_name))["Parameter"]["Value"]
        except ClientError:
            return "none"
        return str(json.loads(value)["request"])

    def instances(self, node_type: str) -> list[str]:
        """List the ids of the cluster's running instances."""
        tags = {"cluster-name": self.name, "node-type": node_type}
        filters = [{"Name": f"tag:parallelcluster:{key}", "Values": [value]} for key, value in tags.items()]
        filters.append({"Name": "instance-state-name", "Values": ["pending", "running"]})
        found = self.site.client("ec2").describe_instances(Filters=filters)["Reservations"]
        return [str(instance["InstanceId"]) for each in found for instance in each["Instances"]]

    def saved(self) -> set[str]:
        """List the saved logs of failed clusters of this name: logs/<cluster_name>/<time>/..."""
        listed = self.site.client("s3").list_objects_v2(Bucket=self.site.bucket, Prefix=f"logs/{self.name}/")
        return {str(entry["Key"]) for entry in listed.get("Contents", [])}

    @contextmanager
    def head_node(self, behaviour: str) -> Iterator[None]:
        """Boot head nodes with this behaviour inside the block."""
        file = self.site.address.head_node_behaviour
        file.write_text(behaviour)
        try:
            yield
        finally:
            file.unlink()
