"""TrainingClusterStack: the cluster and its own resources; its deploy deploys the other stacks, too."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aws_cdk import Annotations, Aws, CfnOutput, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from training_cluster.advice.advice import advice
from training_cluster.catalog.families import load_base
from training_cluster.cluster.bundle import bootstrap_budget_s
from training_cluster.cluster.cluster import Cluster
from training_cluster.cluster.config import render_cluster_config
from training_cluster.cluster.node_policies import Rights, attach_to_own_roles, own_policy_arns
from training_cluster.cluster.nodes import Rendered, bootstrap_prefix, own_images
from training_cluster.cluster.resource_ids import ResourceIds, existing_database
from training_cluster.cluster.scripts import Scripts
from training_cluster.cluster.session_command import cluster_user, start_session_command
from training_cluster.cluster.users_role import users_role
from training_cluster.flags.given import GIVEN_FLAGS, given_flags
from training_cluster.flags.settings import Settings
from training_cluster.functions.guard import guard_cluster
from training_cluster.image.lookup import ClusterImage
from training_cluster.image.names import image_parameter
from training_cluster.monitoring.budget import ACTIVATE_TAG
from training_cluster.monitoring.monitoring import Monitoring
from training_cluster.network.network import Network
from training_cluster.overrides.nodes import own_roles
from training_cluster.pcluster.check import checked_config, override_changes
from training_cluster.queues.queue import Queue
from training_cluster.stack_names import new_key_pair
from training_cluster.storage.storage import SharedStorage

if TYPE_CHECKING:
    from training_cluster.storage.accounting import Accounting


class TrainingClusterStack(Stack):
    """Stack with key pair, placement group, scripts, provider, cluster, dashboard, alarms and budget."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        settings: Settings,
        network: Network,
        storage: SharedStorage,
        accounting: Accounting | None,
    ) -> None:
        super().__init__(
            scope,
            id_,
            stack_name=settings.stack_name,
            description=f"Training Cluster: the cluster {settings.cluster_name}, family {settings.family}",
        )
        self.template_options.metadata = {GIVEN_FLAGS: given_flags(settings)}
        guard = guard_cluster(self, "Guard", service_token=network.guard_token, settings=settings)
        # With samples for the ids of the resources here, but for all that follows from a config the same.
        before = checked_config(settings)
        self._advise(settings, before)
        name, rights = settings.cluster_name, Rights(settings=settings, bucket=storage.bucket)
        if settings.has_users:
            rights = replace(rights, users_role=users_role(self, rights, before))
        scripts = Scripts(
            self,
            "Scripts",
            bucket=storage.bucket,
            prefix=bootstrap_prefix(name),
            settings=settings,
            config=before,
        )
        ids = ResourceIds(
            region=Aws.REGION,
            public_subnet_id=network.public_subnet.subnet_id,
            private_subnet_id=network.private_subnet.subnet_id,
            node_security_group_id=network.node_security_group.security_group_id,
            key_name=settings.key_name or self._key_name(name),
            lustre_id=storage.lustre_id,
            efs_id=storage.efs_id,
            bucket_name=storage.bucket.bucket_name,
            bootstrap_budget_s=bootstrap_budget_s(settings),
            image_id=self._image_id(settings),
            placement_group_name=self._placement_group_name(settings.first_queue, "PlacementGroup"),
            more_placement_groups={
                queue.name: group
                for queue in settings.all_queues[1:]
                if (group := self._placement_group_name(queue, f"PlacementGroup-{queue.name}"))
            },
            **own_policy_arns(self, rights),
            users_role_name=rights.users_role.role_name if rights.users_role else "",
            database=accounting.database if accounting else existing_database(settings),
            bundle_sha256=scripts.sha256,
        )
        config = render_cluster_config(settings=settings, ids=ids)
        cluster = Cluster(
            self,
            "Cluster",
            cluster_name=name,
            config=config,
            scripts_bucket=storage.bucket,
            on_busy=settings.on_busy,
            layer=settings.layer,
            permissions_boundary=settings.permissions_boundary,
            secret_arn=ids.database.secret_arn if ids.database else None,
        )
        cluster.resource.node.add_dependency(scripts.deployment)
        cluster.resource.node.add_dependency(*attach_to_own_roles(self, rights, own_roles(config)))
        # Checked before the cluster changes: a node with a wrong image fails only after half an hour.
        for image, root_gib in own_images(config).items():
            checked = self._checked_image(settings, image, root_gib)
            cluster.resource.node.add_dependency(checked.resource)
        monitoring = Monitoring(
            self,
            "Monitoring",
            settings=settings,
            config=config,
            head_node_instance_id=cluster.head_node_instance_id,
            lustre_id=storage.lustre_id,
        )
        self._outputs(cluster, settings)
        self._outputs_of_monitoring(monitoring, settings)
        for each in self.node.children:
            if each is not guard:
                each.node.add_dependency(guard)

    def _advise(self, settings: Settings, config: Rendered) -> None:
        if settings.overrides:
            changes = "\n  ".join(override_changes(settings))
            Annotations.of(self).add_info(f"overrides={settings.overrides}:\n  {changes}")
        for each in advice(settings, config):
            if each.warns:
                Annotations.of(self).add_warning_v2(f"training-cluster:{each.id}", each.text)
            else:
                Annotations.of(self).add_info(each.text)

    def _key_name(self, cluster_name: str) -> str:
        name, kind = new_key_pair(cluster_name), ec2.KeyPairType.ED25519
        pair = ec2.KeyPair(self, "KeyPair", key_pair_name=name, type=kind)
        fetch = (
            f"(umask 077; aws ssm get-parameter --region {Aws.REGION} --with-decryption "
            f"--name {pair.private_key.parameter_name} --query Parameter.Value --output text "
            f"> {pair.key_pair_name}.pem)"
        )
        CfnOutput(
            self,
            "PrivateKey",
            value=fetch,
            description="For SSH. The key pair is created and deleted with this stack: an old copy of the "
            "key does not open the cluster of a new stack",
        )
        return pair.key_pair_name

    def _image_id(self, settings: Settings) -> str | None:
        if settings.node_image == "build":
            # From SSM, since an export in use could not change. CloudFormation reads the parameter at every
            # deploy, and stops before this stack creates anything if it does not exist.
            return ssm.StringParameter.value_for_typed_string_parameter_v2(
                self, image_parameter(settings), ssm.ParameterValueType.AWS_EC2_IMAGE_ID
            )
        return None if settings.node_image == "official" else settings.node_image

    def _checked_image(self, settings: Settings, image_id: str, root_gib: int) -> ClusterImage:
        suffix = "" if image_id == settings.node_image else image_id.replace("ami-", "Ami")
        image = ClusterImage(
            self,
            f"Image{suffix}",
            wanted=image_id,
            os=settings.os_name,
            architecture=settings.family_facts.architecture,
            root_gib=root_gib,
        )
        words = f"An image of nodes, {image_id}" if suffix else "The nodes' image"
        CfnOutput(self, f"ImageNote{suffix}", value=f"{image.name} {image.note}", description=words)
        return image

    def _placement_group_name(self, queue: Queue, id_: str) -> str | None:
        """Add the new placement group of a queue that needs one; return its name."""
        if not queue.wants_new_placement_group:
            return None
        group = ec2.PlacementGroup(self, id_, strategy=ec2.PlacementGroupStrategy.CLUSTER)
        return group.placement_group_name

    def _outputs(self, cluster: Cluster, settings: Settings) -> None:
        name = settings.cluster_name
        connect = start_session_command(
            region=Aws.REGION,
            instance_id=cluster.head_node_instance_id,
            user=str(cluster_user(settings.os_name)),
        )
        submit = f"sbatch --nodes 2 {load_base().shared_dir}/training/job.slurm gpt2"
        stays = (
            "NetworkStack (its NAT gateway costs), StorageStack with all data, AccountingStack where there "
            f"is one: trainctl destroy --plan --cluster {name} prices them; log groups "
            f"/aws/parallelcluster/{name}-*, /aws/lambda/pcluster-* and of this stack's functions; "
            "ParallelCluster's bucket parallelcluster-*-v1-do-not-delete"
        )
        CfnOutput(self, "HeadNodeInstanceId", value=cluster.head_node_instance_id)
        CfnOutput(self, "Connect", value=connect, description="A shell on the head node, no SSH needed")
        CfnOutput(self, "Submit", value=submit, description="A first training job, typed on the head node")
        CfnOutput(self, "StaysAfterDestroy", value=stays, description="What cdk destroy leaves")

    def _outputs_of_monitoring(self, monitoring: Monitoring, settings: Settings) -> None:
        name = monitoring.dashboard_name
        CfnOutput(self, "Dashboard", value=name, description="In CloudWatch: what runs, what fails, the cost")
        if settings.budget_usd:
            once = (
                "Once, in the account that pays, a day after the first deploy: the budget counts by this tag"
            )
            CfnOutput(self, "ActivateCostTag", value=ACTIVATE_TAG, description=once)
