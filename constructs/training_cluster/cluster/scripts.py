"""Upload of the bundle of scripts, and of the script that fetches it, to the bucket."""

import tempfile
from pathlib import Path

from aws_cdk import Aws, Stack
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_deployment as s3_deployment
from constructs import Construct

from training_cluster.acknowledgements import LOGS_POLICY, acknowledge, acknowledge_wildcards
from training_cluster.cluster.bundle import build_uploads
from training_cluster.cluster.nodes import Rendered
from training_cluster.flags.settings import Settings


class Scripts(Construct):
    """Upload of bootstrap.sh, the user's own scripts and bundle-<sha256>.tar.gz to `s3://<bucket>/<prefix>/`.

    Attributes:
        sha256: hex digest of the bundle; another digest makes an update run the scripts again.
        deployment: upload that the cluster has to wait for.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        bucket: s3.IBucket,
        prefix: str,
        settings: Settings,
        config: Rendered,
    ) -> None:
        super().__init__(scope, id_)
        # By name: a bucket that CDK knows as its own gets a tag for each prefix, and StorageStack would
        # change with every cluster.
        target = s3.Bucket.from_bucket_name(self, "Target", bucket.bucket_name)
        self.sha256, files = build_uploads(settings=settings, config=config)
        with tempfile.TemporaryDirectory() as folder:  # CDK copies the asset into cdk.out at once
            for key, content in files.items():
                path = Path(folder) / key
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            self.deployment = s3_deployment.BucketDeployment(
                self,
                "Deployment",
                sources=[s3_deployment.Source.asset(folder)],
                destination_bucket=target,
                destination_key_prefix=prefix,
                prune=False,
                # An own log group, so that the function refers to it: CDK's would be created at the time of
                # the first call, at which Lambda creates one of the same name.
                log_group=logs.LogGroup(self, "DeploymentLog", retention=logs.RetentionDays.THREE_MONTHS),
            )
        self._acknowledge(target)

    def _acknowledge(self, target: s3.IBucket) -> None:
        """Acknowledge the rights that CDK gives to its own function for copying."""
        role = self.deployment.handler_role
        function = role.node.scope
        assert function
        stack = Stack.of(self)
        qualifier = stack.synthesizer.bootstrap_qualifier
        assets = f"cdk-{qualifier}-assets-{Aws.ACCOUNT_ID}-{Aws.REGION}"
        acknowledge_wildcards(
            function,
            [f"arn:{Aws.PARTITION}:s3:::{assets}/*", target.arn_for_objects("*")],
            "CDK's own function: it may read all assets and write to all of the bucket",
        )
        for action in ("GetBucket*", "GetObject*", "List*", "Abort*", "DeleteObject*"):
            rule = f"AwsSolutions-IAM5[Action::s3:{action}]"
            acknowledge(function, rule, "CDK's own function: the actions of its Bucket.grant_read and _write")
        acknowledge(function, LOGS_POLICY, "CDK's own function; AWS's own policy of the right to log")
        acknowledge(function, "AwsSolutions-L1", "CDK's own function: its Python comes with aws-cdk-lib")
