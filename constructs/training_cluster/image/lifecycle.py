"""Old images go: AMIs, their snapshots, and what Image Builder knows of them."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk.aws_imagebuilder import CfnLifecyclePolicy as _Cfn
from constructs import Construct

from training_cluster.acknowledgements import acknowledge_wildcards
from training_cluster.image.names import CONTENT_TAG, IMAGE_TAG

KEPT_IMAGES = 3
"""Of the content that is deployed: the newest, and two to go back to."""
UNUSED_DAYS = 180
"""Without a launch: half a year. A cluster that starts no node for so long, and is not deployed meanwhile,
has to be deployed anew. Every build launches its image once, to test it."""

_BY_IMAGE_BUILDER = {"StringEquals": {"aws:ResourceTag/CreatedBy": "EC2 Image Builder"}}


class ImageLifecycle(Construct):
    """Deletes images that were not launched for half a year; of those of the deployed content, all but three.

    Two policies, since Image Builder counts for each version of a recipe, and every content has its own: one
    that counts would keep three of each, for good (its guide, "How retention is calculated"). The one by age
    leaves the deployed content alone, by the tag with its digest: the image that a cluster takes at its next
    deploy is there, however old.

    Args:
        tags: of the builds that are deployed: the kind of image, by which Image Builder finds all of it, and
            the digest of the content.

    Attributes:
        policies: after what they are about.
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
        """What AWS's EC2ImageBuilderLifecycleExecutionPolicy has for deleting, of these images only."""
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
            # Image Builder tags snapshots as its own, and with nothing of ours (unconfirmed).
            iam.PolicyStatement(
                actions=["ec2:DeleteSnapshot"], resources=[snapshots], conditions=_BY_IMAGE_BUILDER
            ),
            iam.PolicyStatement(actions=["imagebuilder:DeleteImage"], resources=[builds]),
            # No resource is known of these (Service Authorization Reference).
            iam.PolicyStatement(actions=["ec2:DescribeImages", "tag:GetResources"], resources=["*"]),
        ]
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("imagebuilder.amazonaws.com"),
            description="Deletes old node images",
            inline_policies={"Lifecycle": iam.PolicyDocument(statements=statements)},
        )
        acknowledge_wildcards(role, ["*"], "EC2 and the tagging API know no resource of these actions")
        acknowledge_wildcards(role, [images, snapshots], "by their tags: see the conditions")
        acknowledge_wildcards(role, [builds], "all versions of this image")
        return role
