"""Content of an image: the bundle of steps, Image Builder's component that runs them, and the recipe."""

import hashlib
import tempfile
from pathlib import Path

from aws_cdk import aws_imagebuilder as imagebuilder
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from training_cluster.catalog.families import load_base
from training_cluster.cluster.bundle import build_image_bundle
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.flags.settings import Settings
from training_cluster.functions.guard import RETAINED
from training_cluster.image.names import CONTENT_TAG, IMAGE_TAG, ROOT_DEVICES, image_name
from training_cluster.paths import ASSETS

DOCUMENT = ASSETS / "images" / "node-image.yaml"
# ami_cleanup.sh empties /tmp, the default, while Image Builder's program works there; ParallelCluster's own
# builds use this folder, too (its constants.py, PCLUSTER_TMP_DIR).
WORKING_DIRECTORY = "/opt/parallelcluster/tmp"
# Neither resource can change, and CloudFormation creates the new one under the same name before it deletes
# the old one. Image Builder increments the x (guide, "Semantic versioning"), and a component's build number.
RECIPE_VERSION, COMPONENT_VERSION = "1.0.x", "1.0.0"


class ImageContent(Construct):
    """Component and recipe of an image; both get a new version when its content changes, and only then.

    They are retained when they are replaced and when their stack is deleted: builds depend on their recipe,
    and both cost nothing.

    Args:
        settings: recipe, operating system and workloads.
        parent_image_id: id of the official image; a token.

    Attributes:
        bundle: bundle of steps, in the bucket of CDK's assets.
        recipe_arn: ARN of the recipe (a token).
        tags: tags of builds: the kind of image, and the digest of its content without the parent image.
    """

    def __init__(self, scope: Construct, id_: str, *, settings: Settings, parent_image_id: str) -> None:
        super().__init__(scope, id_)
        self._settings, self._name = settings, image_name(settings)
        self._recipe = load_base().image_recipes[settings.family_facts.image_recipe]
        bundle = build_image_bundle(
            recipe=settings.family_facts.image_recipe, workloads=settings.node_workloads
        )
        self._sha256 = hashlib.sha256(bundle).hexdigest()
        self.tags = {IMAGE_TAG: self._name, CONTENT_TAG: self._digest()}
        with tempfile.TemporaryDirectory() as folder:  # CDK copies it into cdk.out at once
            path = Path(folder) / "image-bundle.tar.gz"
            path.write_bytes(bundle)
            self.bundle = s3_assets.Asset(self, "Bundle", path=str(path))
        self.recipe_arn = self._recipe_arn(parent_image_id)

    def _digest(self) -> str:
        made_of = (PCLUSTER_VERSION, DOCUMENT.read_text(), self._sha256, self._recipe.model_dump_json())
        return hashlib.sha256("\n".join(made_of).encode()).hexdigest()[:16]

    def _component(self) -> imagebuilder.CfnImageRecipe.ComponentConfigurationProperty:
        component = imagebuilder.CfnComponent(
            self,
            "Component",
            name=self._name,
            version=COMPONENT_VERSION,
            platform="Linux",
            description="Runs the bootstrap's steps on ParallelCluster's image",
            data=DOCUMENT.read_text(),
        )
        component.apply_removal_policy(RETAINED)
        parameters = {
            "PclusterVersion": PCLUSTER_VERSION,
            "Recipe": self._settings.family_facts.image_recipe,
            "BundleSource": self.bundle.s3_object_url,
            "BundleSha256": self._sha256,
        }
        return imagebuilder.CfnImageRecipe.ComponentConfigurationProperty(
            component_arn=component.attr_arn,
            parameters=[
                imagebuilder.CfnImageRecipe.ComponentParameterProperty(name=name, value=[value])
                for name, value in parameters.items()
            ],
        )

    def _recipe_arn(self, parent_image_id: str) -> str:
        cfn = imagebuilder.CfnImageRecipe
        recipe = cfn(
            self,
            "Recipe",
            name=self._name,
            version=RECIPE_VERSION,
            description=self._recipe.description,
            parent_image=parent_image_id,
            working_directory=WORKING_DIRECTORY,
            components=[self._component()],
            block_device_mappings=[
                cfn.InstanceBlockDeviceMappingProperty(
                    device_name=ROOT_DEVICES[self._settings.os_name],
                    ebs=cfn.EbsInstanceBlockDeviceSpecificationProperty(
                        encrypted=True,
                        delete_on_termination=True,
                        volume_type="gp3",
                        volume_size=self._recipe.root_gib,
                    ),
                )
            ],
            # Nodes answer Session Manager with the parent image's agent.
            additional_instance_configuration=cfn.AdditionalInstanceConfigurationProperty(
                systems_manager_agent=cfn.SystemsManagerAgentProperty(uninstall_after_build=False)
            ),
        )
        recipe.apply_removal_policy(RETAINED)
        return recipe.attr_arn
