"""Instance that builds and tests an image: its network and its rights."""

from aws_cdk import Aws, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_imagebuilder as imagebuilder
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from training_cluster.acknowledgements import acknowledge_wildcards
from training_cluster.catalog.family import ImageRecipe
from training_cluster.cluster.node_policies import SESSION_ACTIONS
from training_cluster.network.network import Network

LOGS_PREFIX = "logs/images"


class ImageInstance(Construct):
    """Instance in the private subnet, without inbound access, with IMDSv2 only.

    Its rights are narrower than AWS's policies for it (EC2InstanceProfileForImageBuilder,
    AmazonSSMManagedInstanceCore), which read every parameter, every ISO image and every component.

    Args:
        name: name of the image.
        bundle: bundle of steps that the instance downloads and runs.
        log_group, log_bucket: destinations of Image Builder's logs.
        tags: tags of the instance, its disks and interfaces.

    Attributes:
        arn: ARN of the infrastructure configuration.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        name: str,
        recipe: ImageRecipe,
        network: Network,
        bundle: s3_assets.Asset,
        log_group: logs.LogGroup,
        log_bucket: s3.IBucket,
        tags: dict[str, str],
    ) -> None:
        super().__init__(scope, id_)
        self._name = name
        group = ec2.SecurityGroup(
            self,
            "SecurityGroup",
            vpc=network.vpc,
            description="Image builds: nobody in, packages and AWS APIs out",
            allow_all_outbound=True,
        )
        role = self._role(bundle, log_group, log_bucket)
        configuration = imagebuilder.CfnInfrastructureConfiguration(
            self,
            "Configuration",
            name=name,
            description="Builds and tests node images of Training Cluster",
            instance_types=[recipe.build_instance_type],
            instance_profile_name=iam.InstanceProfile(self, "Profile", role=role).instance_profile_name,
            subnet_id=network.private_subnet.subnet_id,
            security_group_ids=[group.security_group_id],
            instance_metadata_options=imagebuilder.CfnInfrastructureConfiguration.InstanceMetadataOptionsProperty(
                http_tokens="required", http_put_response_hop_limit=1
            ),
            logging=imagebuilder.CfnInfrastructureConfiguration.LoggingProperty(
                s3_logs=imagebuilder.CfnInfrastructureConfiguration.S3LogsProperty(
                    s3_bucket_name=log_bucket.bucket_name, s3_key_prefix=f"{LOGS_PREFIX}/{name}"
                )
            ),
            # The logs have the cause; an instance that keeps running only costs.
            terminate_instance_on_failure=True,
            resource_tags=tags,
        )
        self.arn = configuration.attr_arn

    def _role(self, bundle: s3_assets.Asset, log_group: logs.LogGroup, log_bucket: s3.IBucket) -> iam.Role:
        stack = Stack.of(self)
        components = stack.format_arn(
            service="imagebuilder", resource="component", resource_name=f"{self._name}/*"
        )
        # Image Builder's own program is stored in AWS's buckets, one a region.
        service = f"arn:{Aws.PARTITION}:s3:::ec2imagebuilder*"
        written = log_bucket.arn_for_objects(f"{LOGS_PREFIX}/{self._name}/*")
        fetched = f"arn:{Aws.PARTITION}:s3:::{bundle.s3_bucket_name}/{bundle.s3_object_key}"
        statements = [
            iam.PolicyStatement(actions=list(SESSION_ACTIONS), resources=["*"]),
            iam.PolicyStatement(actions=["imagebuilder:GetComponent"], resources=[components]),
            iam.PolicyStatement(actions=["s3:GetObject"], resources=[service, fetched]),
            iam.PolicyStatement(actions=["s3:PutObject"], resources=[written]),
            iam.PolicyStatement(
                actions=["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"],
                resources=[log_group.log_group_arn],
            ),
        ]
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"),
            description="Of instances that build and test node images",
            # Inline, so that the rights exist before the first build begins.
            inline_policies={"Build": iam.PolicyDocument(statements=statements)},
        )
        acknowledge_wildcards(role, ["*"], "a channel has no ARN; AWS's own policies have nothing narrower")
        acknowledge_wildcards(role, [components], "all versions of this image's component")
        acknowledge_wildcards(role, [service], "AWS's buckets of Image Builder's program: named by region")
        acknowledge_wildcards(role, [written], "this image's logs, all of them")
        acknowledge_wildcards(role, [log_group.log_group_arn], "all streams of this image's log")
        return role
