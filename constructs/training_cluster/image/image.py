"""The nodes' image: EC2 Image Builder builds it from the official one, at a deploy and by its pipeline."""

from typing import Any

from aws_cdk import Aws, RemovalPolicy
from aws_cdk import aws_imagebuilder as imagebuilder
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from training_cluster.catalog.families import load_base
from training_cluster.flags.account import CLUSTER_TAG, SHARED
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.flags.settings import Settings
from training_cluster.functions.guard import RETAINED
from training_cluster.image.content import ImageContent
from training_cluster.image.instance import LOGS_PREFIX, ImageInstance
from training_cluster.image.lifecycle import ImageLifecycle
from training_cluster.image.names import IMAGE_TAG, image_name, image_parameter, image_tags
from training_cluster.network.network import Network

MONTHLY = "cron(0 3 1 * ? *)"
"""Schedule of the monthly build: the first of a month, 03:00 UTC."""


class NodeImage(Construct):
    """Image that is built, tested and published when its content changes; the deploy waits for all of it.

    An image is retained when the next one replaces it and when its stack is deleted, since a cluster may run
    on it. So the parameter always names an existing image, even when a deploy fails after the build. The
    lifecycle deletes old images.

    Args:
        settings: recipe, operating system, workloads, schedule and tags; nothing of one cluster.
        parent_image_id: id of the official image; a token.
        bucket: bucket for the logs of builds.

    Attributes:
        id: id of the AMI that the deploy built (a token).
        pipeline_arn: ARN of the pipeline that builds it again (a token).
        logs: text that names the places of the builds' logs.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        settings: Settings,
        parent_image_id: str,
        network: Network,
        bucket: s3.IBucket,
    ) -> None:
        super().__init__(scope, id_)
        self._settings, self._name = settings, image_name(settings)
        self._log_group = logs.LogGroup(
            self,
            "Log",
            # Image Builder's service-linked role may write to logs of such names only.
            log_group_name=f"/aws/imagebuilder/{self._name}",
            retention=logs.RetentionDays.THREE_MONTHS,
            # A retained log group would block the next stack, since its name is fixed.
            removal_policy=RemovalPolicy.DESTROY,
        )
        self._content = ImageContent(self, "Content", settings=settings, parent_image_id=parent_image_id)
        instance = ImageInstance(
            self,
            "Instance",
            name=self._name,
            recipe=load_base().image_recipes[settings.family_facts.image_recipe],
            network=network,
            bundle=self._content.bundle,
            log_group=self._log_group,
            log_bucket=bucket,
            tags={IMAGE_TAG: self._name, CLUSTER_TAG: SHARED, **settings.own_tags},
        )
        parts = {
            "image_recipe_arn": self._content.recipe_arn,
            "infrastructure_configuration_arn": instance.arn,
            "distribution_configuration_arn": self._distribution_arn(),
            # The metadata is a list of packages, which needs rights that the instance does not have.
            "enhanced_image_metadata_enabled": False,
        }
        image, pipeline = self._image(parts), self._pipeline(parts)
        lifecycle = ImageLifecycle(self, "Lifecycle", tags=self._content.tags)
        # The pipeline and the lifecycle are created after a successful build.
        for each in (pipeline, *lifecycle.policies):
            each.add_resource_dependency(image)
        self.id, self.pipeline_arn = image.attr_image_id, pipeline.attr_arn
        # Without the bucket's name, which is StorageStack's output: cfn-lint refuses a repeated one (W6001).
        self.logs = f"/aws/imagebuilder/{self._name} in CloudWatch; {LOGS_PREFIX}/{self._name}/ in the bucket"

    def _distribution_arn(self) -> str:
        cfn = imagebuilder.CfnDistributionConfiguration
        recipe = self._settings.family_facts.image_recipe
        # CDK passes this JSON on unchanged.
        ami = {
            "Name": f"{self._name} {{{{ imagebuilder:buildDate }}}}",
            # Unlike ParallelCluster's own description, which its validator refuses for V100.
            "Description": f"Training Cluster: nodes of recipe {recipe}, {self._settings.os_name}, "
            f"ParallelCluster {PCLUSTER_VERSION}",
            "AmiTags": image_tags(self._settings),
        }
        published = cfn.SsmParameterConfigurationProperty(
            parameter_name=image_parameter(self._settings), data_type="aws:ec2:image"
        )
        return cfn(
            self,
            "Distribution",
            name=self._name,
            description="Names the AMI, and publishes its id to Systems Manager",
            distributions=[
                cfn.DistributionProperty(
                    region=Aws.REGION,
                    ami_distribution_configuration=ami,
                    ssm_parameter_configurations=[published],
                )
            ],
        ).attr_arn

    def _image(self, parts: dict[str, Any]) -> imagebuilder.CfnImage:
        cfn = imagebuilder.CfnImage
        image = cfn(
            self,
            "Image",
            **parts,
            image_tests_configuration=cfn.ImageTestsConfigurationProperty(image_tests_enabled=True),
            logging_configuration=cfn.ImageLoggingConfigurationProperty(
                log_group_name=self._log_group.log_group_name
            ),
            tags=self._content.tags,
        )
        image.apply_removal_policy(RETAINED)
        return image

    def _pipeline(self, parts: dict[str, Any]) -> imagebuilder.CfnImagePipeline:
        cfn = imagebuilder.CfnImagePipeline
        monthly = cfn.ScheduleProperty(
            schedule_expression=MONTHLY, pipeline_execution_start_condition="EXPRESSION_MATCH_ONLY"
        )
        return cfn(
            self,
            "Pipeline",
            **parts,
            name=self._name,
            description="Builds the node image again, from the same parent and pins",
            image_tests_configuration=cfn.ImageTestsConfigurationProperty(image_tests_enabled=True),
            logging_configuration=cfn.PipelineLoggingConfigurationProperty(
                image_log_group_name=self._log_group.log_group_name,
                pipeline_log_group_name=self._log_group.log_group_name,
            ),
            schedule=monthly if self._settings.image_rebuild == "monthly" else None,
            image_tags=self._content.tags,
        )
