"""Network and storage of recorded clusters: one plain stack, which deploys faster than the app's."""

from __future__ import annotations

import json
import time
from functools import cached_property
from pathlib import Path
from typing import Any

from rehearsal.validation.cases import Case
from rehearsal.validation.foundation import Foundation
from training_cluster.cluster.config import render_cluster_config
from training_cluster.cluster.nodes import bootstrap_prefix
from training_cluster.cluster.resource_ids import Database, ResourceIds
from training_cluster.flags.settings import Settings
from training_cluster.rules.context import read_settings

_TEMPLATE = Path(__file__).with_name("plain_foundation.yaml")
_STACK = "ground"


class PlainFoundation(Foundation):
    """A Foundation that deploys its own stack, without the CDK and without a cluster."""

    def _deployed(self) -> ResourceIds:
        made = self.outputs
        return ResourceIds(
            region=self._address.region,
            public_subnet_id=made["Public"],
            private_subnet_id=made["Private"],
            node_security_group_id=made["Nodes"],
            key_name=made["Key"],
            lustre_id=made["Lustre"],
            efs_id=made["Efs"],
            bucket_name=made["Bucket"],
            nodes_policy_arn=made["NodesPolicy"],
            datasets_policy_arn=made["DatasetsPolicy"],
            bundle_sha256="0" * 64,
            bootstrap_budget_s=0,
            placement_group_name=made["PlacementGroup"],
            login_policy_arn=made["LoginPolicy"],
            database=Database(uri="db.example.com:3306", user="slurm", secret_arn=made["Password"]),
        )

    @cached_property
    def outputs(self) -> dict[str, str]:
        """Outputs of the stack, which is deployed at first use."""
        cloudformation = self._client("cloudformation")
        cloudformation.create_stack(
            StackName=_STACK,
            TemplateBody=_TEMPLATE.read_text(encoding="utf-8"),
            Parameters=[{"ParameterKey": "Zone", "ParameterValue": self._zone}],
            Capabilities=["CAPABILITY_NAMED_IAM"],
        )
        cloudformation.get_waiter("stack_create_complete").wait(
            StackName=_STACK, WaiterConfig={"Delay": 0.5, "MaxAttempts": 120}
        )
        [stack] = cloudformation.describe_stacks(StackName=_STACK)["Stacks"]
        return {output["OutputKey"]: str(output["OutputValue"]) for output in stack["Outputs"]}

    def config(self, *cases: Case) -> tuple[str, dict[str, Any]]:
        """Return the name and the config of the first case's cluster, with a queue for each other case.

        Raises:
            ConfigurationError: our flags refuse a case.
        """
        rendered = [self._settings(case) for case in cases]
        configs = [render_cluster_config(settings=each, ids=self.ids(each)) for each in rendered]
        first, *others = configs
        queues = first["Scheduling"]["SlurmQueues"]
        for number, config in enumerate(others):
            queues.append(config["Scheduling"]["SlurmQueues"][0] | {"Name": f"queue-{number}"})
        return rendered[0].cluster_name, first

    def event(self, kind: str, *cases: Case) -> dict[str, Any]:
        """Return the event of a request for these cases' cluster, as CDK's framework passes it on.

        Args:
            kind: Create, Update or Delete.

        Raises:
            ConfigurationError: our flags refuse a case.
        """
        name, config = self.config(*cases)
        event = {
            "RequestType": kind,
            "RequestId": f"{kind} {[case.flags for case in cases]}",
            "StackId": self.outputs["Stack"],
            "ResourceType": "Custom::TrainingCluster",
            "ResourceProperties": {
                "ClusterName": name,
                "ClusterConfiguration": json.dumps(config),
                "OnBusy": "fail",
            },
        }
        return event if kind == "Create" else event | {"PhysicalResourceId": name}

    @property
    def provider_environment(self) -> dict[str, str]:
        """Environment of the provider's functions, with this site's bucket and log group."""
        return self._address.client_environment() | {
            "LOGS_BUCKET": self.outputs["Bucket"],
            "PROGRESS_LOG_GROUP": self.outputs["Progress"],
            "PROGRESS_PARAMETER": "/recording/progress",
        }

    def write_head_node_log(self, cluster_name: str, instance_id: str) -> None:
        """Write one line to a log of the cluster's head node, as its agent would."""
        logs, ec2 = self._client("logs"), self._client("ec2")
        node = ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"][0]
        stream = f"{node['PrivateDnsName'].partition('.')[0]}.{instance_id}.cfn-init"
        prefix = f"/aws/parallelcluster/{cluster_name}-"
        [group] = logs.describe_log_groups(logGroupNamePrefix=prefix)["logGroups"]
        names = {"logGroupName": group["logGroupName"], "logStreamName": stream}
        logs.create_log_stream(**names)
        logs.put_log_events(**names, logEvents=[{"timestamp": int(time.time() * 1000), "message": "booting"}])

    def _settings(self, case: Case) -> Settings:
        """Return the case's settings, and upload its scripts to the place where the library expects them."""
        settings = read_settings(self.flags(case))
        self._client("s3").put_object(
            Bucket=self._ids.bucket_name,
            Key=f"{bootstrap_prefix(settings.cluster_name)}/bootstrap.sh",
            Body=b"#!/bin/bash\n",
        )
        return settings
