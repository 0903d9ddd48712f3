"""Deletion of old images: AMIs, their snapshots, and Image Builder's resources of them."""

from collections.abc import Mapping

from aws_cdk import Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk.aws_imagebuilder import CfnLifecyclePolicy as _Cfn
from constructs import Construct

from training_cluster.acknowledgements import acknowledge_wildcards
from training_cluster.image.names import CONTENT_TAG, IMAGE_TAG

KEPT_IMAGES = 3
"""Number of images of the deployed content: the newest, and two to return to."""
UNUSED_DAYS = 180
"""Days without a launch, half a year. A cluster that starts no node for so long, and is not deployed in that
time, has to be deployed again. Every build launches its image once, to test it."""

_BY_IMAGE_BUILDER = {"StringEquals": {"aws:ResourceTag/CreatedBy": "EC2 Image Builder"}}


class ImageLifecycle(Construct):
    """Policies that delete images without a launch for half a year; three of the deployed content remain.

    Two policies, since Image Builder counts images by version of a recipe, and every content has its own
    version: a policy by count would keep three of each forever (its guide, "How retention is calculated").
    The policy by age excludes the deployed content by the tag with its digest: the image that a cluster takes
    at its next deploy exists, however old it is.

    Args:
        tags: tags of the deployed builds: the kind of image, by which Image Builder finds them, and the
            digest of the content.

    Attributes:
        policies: the lifecycle policies, to be created after the image.
    """

    def __init__(self, scope: Construct, id_: str, *, tags: Mapping[str, str]) -> None:
        super().__init__(scope, id_)
        self._name = tags[IMAGE_TAG]
        self._role_arn = self._role().role_arn
        self.policies = [
            self._policy(
                "Rebuilt",
                description=f"All but the newest {KEPT_IMAGES} of one content",
                filter_=_Cfn.FilterProperty(type="COUNT", value=KEPT_IMAGES),
            ),
            self._policy(
                "Replaced",
                description="Those of another content than the one that is deployed",
                filter_=_Cfn.FilterProperty(type="AGE", value=UNUSED_DAYS, unit="DAYS"),
                kept={CONTENT_TAG: tags[CONTENT_TAG]},
            ),
        ]

    def _policy(
        self,
        id_: str,
        *,
        description: str,
        filter_: _Cfn.FilterProperty,
        kept: dict[str, str] | None = None,
    ) -> _Cfn:
        last_launched = _Cfn.LastLaunchedProperty(unit="DAYS", value=UNUSED_DAYS)
        return _Cfn(
            self,
            id_,
            name=f"{self._name}-{id_.lower()}",
            description=f"{description}, when nothing was launched from them for {UNUSED_DAYS} days",
            execution_role=self._role_arn,
            resource_type="AMI_IMAGE",
            resource_selection=_Cfn.ResourceSelectionProperty(tag_map={IMAGE_TAG: self._name}),
            policy_details=[
                _Cfn.PolicyDetailProperty(
                    action=_Cfn.ActionProperty(
                        type="DELETE",
                        include_resources=_Cfn.IncludeResourcesProperty(amis=True, snapshots=True),
                    ),
                    filter=filter_,
                    exclusion_rules=_Cfn.ExclusionRulesProperty(
                        tag_map=kept, amis=_Cfn.AmiExclusionRulesProperty(last_launched=last_launched)
                    ),
                )
            ],
        )

    def _role(self) -> iam.Role:
        """Add a role that may delete these images, from EC2ImageBuilderLifecycleExecutionPolicy of AWS."""
        images = f"arn:{Aws.PARTITION}:ec2:{Aws.REGION}::image/*"
        snapshots = f"arn:{Aws.PARTITION}:ec2:{Aws.REGION}::snapshot/*"
        builds = Stack.of(self).format_arn(
            service="imagebuilder", resource="image", resource_name=f"{self._name}/*"
        )
        of_this_name = {"StringEquals": {f"aws:ResourceTag/{IMAGE_TAG}": self._name}}
        statements = [
            iam.PolicyStatement(
                actions=["ec2:DeregisterImage", "ec2:DescribeImageAttribute"],
                resources=[images],
                conditions=of_this_name,
            ),
            # Image Builder gives snapshots its own tag, and none of the app's tags (unconfirmed).
            iam.PolicyStatement(
                actions=["ec2:DeleteSnapshot"], resources=[snapshots], conditions=_BY_IMAGE_BUILDER
            ),
            iam.PolicyStatement(actions=["imagebuilder:DeleteImage"], resources=[builds]),
            # These actions have no resource (Service Authorization Reference).
            iam.PolicyStatement(actions=["ec2:DescribeImages", "tag:GetResources"], resources=["*"]),
        ]
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("imagebuilder.amazonaws.com"),
            description="Deletes old node images",
            inline_policies={"Lifecycle": iam.PolicyDocument(statements=statements)},
        )
        acknowledge_wildcards(role, ["*"], "these actions of EC2 and of the tagging API support no resources")
        acknowledge_wildcards(role, [images, snapshots], "by their tags: see the conditions")
        acknowledge_wildcards(role, [builds], "all versions of this image")
        return role
