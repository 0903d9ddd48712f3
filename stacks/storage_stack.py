"""StorageStack: everything that holds data. `cdk destroy TrainingClusterStack` leaves it alone."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack, Token
from constructs import Construct

from training_cluster.network import Network
from training_cluster.settings import Settings
from training_cluster.storage import Storage


class StorageStack(Stack):
    """Bucket, Lustre and EFS: retained, and under termination protection."""

    def __init__(self, scope: Construct, id_: str, *, settings: Settings, network: Network) -> None:
        super().__init__(
            scope, id_, description="Training Cluster: data, kept when it goes", termination_protection=True
        )
        self.storage = Storage(
            self,
            "Storage",
            vpc=network.vpc,
            subnet=network.private_subnet,
            node_security_group=network.node_security_group,
            flags=settings,
        )
        CfnOutput(self, "BucketName", value=self.storage.bucket.bucket_name)
        CfnOutput(self, "FileSystemId", value=self.storage.lustre_id)
        CfnOutput(self, "EfsId", value=self.storage.efs_id)
        for value in (
            self.storage.bucket.bucket_name,
            self.storage.lustre_id,
            self.storage.efs_id,
        ):
            if Token.is_unresolved(value):
                self.export_value(value)
