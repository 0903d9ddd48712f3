"""StorageStack: everything that holds data. `cdk destroy TrainingClusterStack` does not delete it."""

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_s3 as s3
from constructs import Construct

from training_cluster.flags.settings import Settings
from training_cluster.functions.guard import Guard
from training_cluster.network.network import Network
from training_cluster.stack_names import STORAGE_STACK
from training_cluster.storage.guarded import guarded_storage
from training_cluster.storage.storage import SharedStorage, Storage


class StorageStack(Stack):
    """Bucket, Lustre and EFS: retained, guarded, and under termination protection.

    Attributes:
        storage: the storage, for the other stacks, which depend on this one.
    """

    def __init__(self, scope: Construct, id_: str, *, settings: Settings, network: Network) -> None:
        super().__init__(
            scope,
            id_,
            stack_name=STORAGE_STACK,
            description="Training Cluster: data, kept when it goes",
            termination_protection=True,
        )
        made = Storage(
            self,
            "Storage",
            vpc=network.vpc,
            subnet=network.private_subnet,
            node_security_group=network.node_security_group,
            flags=settings,
        )
        values = guarded_storage(
            settings,
            vpc_id=network.vpc.vpc_id,
            subnet_id=network.private_subnet.subnet_id,
            node_security_group_id=network.node_security_group.security_group_id,
        )
        Guard(self, "Guard", values=values).protect(made)
        self.storage = SharedStorage(
            bucket=s3.Bucket.from_bucket_name(
                self, "SharedBucket", self._export("BucketName", made.bucket_name)
            ),
            lustre_id=self._export("FileSystemId", made.lustre_id),
            efs_id=self._export("EfsId", made.efs_id),
        )

    def _export(self, name: str, value: str) -> str:
        """Export a value, new or given, and return its import for other stacks.

        The name is fixed: CDK's would change when an id is given. So CloudFormation refuses another id for a
        deployed stack, and accepts the flag with the same id.
        """
        return CfnOutput(self, name, value=value, export_name=f"{self.stack_name}:{name}").import_value
