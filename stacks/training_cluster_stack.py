"""TrainingClusterStack: the cluster and what belongs to it alone; deploying it brings the rest along."""

from __future__ import annotations

from aws_cdk import Aws, CfnOutput, Stack
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from training_cluster.cluster import Cluster
from training_cluster.cluster_config import ResourceIds, bootstrap_prefix, render_cluster_config
from training_cluster.families import load_base
from training_cluster.network import Network
from training_cluster.scripts import Scripts
from training_cluster.settings import Settings
from training_cluster.storage import Storage


class TrainingClusterStack(Stack):
    """Key pair, placement group, scripts, provider, cluster."""

    def __init__(
        self, scope: Construct, id_: str, *, settings: Settings, network: Network, storage: Storage
    ) -> None:
        super().__init__(
            scope,
            id_,
            stack_name=settings.stack_name,
            description=f"Training Cluster: the cluster {settings.cluster_name}, family {settings.family}",
        )
        name, family = settings.cluster_name, settings.family_facts
        key_pair = ec2.KeyPair(self, "KeyPair", key_pair_name=f"{name}-key", type=ec2.KeyPairType.ED25519)
        placement_group = (
            ec2.PlacementGroup(self, "PlacementGroup", strategy=ec2.PlacementGroupStrategy.CLUSTER)
            if family.efa
            else None
        )
        scripts = Scripts(
            self, "Scripts", bucket=storage.bucket, prefix=bootstrap_prefix(name), family=family
        )
        ids = ResourceIds(
            region=Aws.REGION,
            partition=Aws.PARTITION,
            public_subnet_id=network.public_subnet.subnet_id,
            private_subnet_id=network.private_subnet.subnet_id,
            node_security_group_id=network.node_security_group.security_group_id,
            key_name=key_pair.key_pair_name,
            file_system_id=storage.file_system.file_system_id,
            bucket_name=storage.bucket.bucket_name,
            bundle_sha256=scripts.sha256,
            placement_group_name=placement_group.placement_group_name if placement_group else None,
        )
        cluster = Cluster(
            self,
            "Cluster",
            cluster_name=name,
            config=render_cluster_config(settings=settings, ids=ids),
            scripts_bucket=storage.bucket,
        )
        cluster.resource.node.add_dependency(scripts.deployment)
        self._outputs(cluster)

    def _outputs(self, cluster: Cluster) -> None:
        connect = f"aws ssm start-session --region {Aws.REGION} --target {cluster.head_node_instance_id}"
        submit = f"sbatch --nodes 2 {load_base().shared_dir}/training/job.slurm gpt2"
        CfnOutput(self, "HeadNodeInstanceId", value=cluster.head_node_instance_id)
        CfnOutput(self, "Connect", value=connect, description="A shell on the head node, no SSH needed")
        CfnOutput(self, "Submit", value=submit, description="A first training job, typed on the head node")
