"""ImageStack: the nodes' image, with image=build; one for each recipe, operating system and release."""

from aws_cdk import Aws, CfnOutput, Stack
from constructs import Construct

from training_cluster.catalog.families import load_base
from training_cluster.flags.settings import Settings
from training_cluster.image.image import NodeImage
from training_cluster.image.lookup import OFFICIAL, ClusterImage
from training_cluster.image.names import IMAGE_TAG, image_name, image_parameter, image_stack_name
from training_cluster.network.network import Network
from training_cluster.storage.storage import SharedStorage


class ImageStack(Stack):
    """Image that is built from the official one; clusters read its id from Systems Manager."""

    def __init__(
        self, scope: Construct, id_: str, *, settings: Settings, network: Network, storage: SharedStorage
    ) -> None:
        recipe = settings.family_facts.image_recipe
        super().__init__(
            scope,
            id_,
            stack_name=image_stack_name(settings),
            description=f"Training Cluster: image of nodes, recipe {recipe}, {settings.os_name}",
        )
        parent = ClusterImage(
            self,
            "Parent",
            wanted=OFFICIAL,
            os=settings.os_name,
            root_gib=load_base().image_recipes[recipe].root_gib,
        )
        image = NodeImage(
            self,
            "Image",
            settings=settings,
            parent_image_id=parent.id,
            network=network,
            bucket=storage.bucket,
        )
        self._outputs(settings, parent, image)

    def _outputs(self, settings: Settings, parent: ClusterImage, image: NodeImage) -> None:
        recipe = load_base().image_recipes[settings.family_facts.image_recipe]
        parameter = image_parameter(settings)
        again = (
            f"aws imagebuilder start-image-pipeline-execution --region {Aws.REGION} "
            f"--image-pipeline-arn {image.pipeline_arn}"
        )
        takes = (
            f"{recipe.usual_min} minutes on one {recipe.build_instance_type}, as estimated; "
            "trainctl image-plan FAMILY has the steps, and what each may take"
        )
        stays = (
            f"The AMIs with the tag {IMAGE_TAG}={image_name(settings)} and their snapshots, which cost: a "
            f"cluster may run on them. The parameter {parameter}, recipes and components, which cost "
            "nothing; the logs"
        )
        CfnOutput(self, "ImageId", value=image.id, description="The AMI that the last deploy built")
        CfnOutput(self, "Parameter", value=parameter, description="Holds the id of the newest AMI")
        made_from = f"{parent.name} {parent.note}"
        CfnOutput(self, "ParentImage", value=made_from, description="What it was made from")
        CfnOutput(
            self,
            "BuildAgain",
            value=again,
            description="Then trainctl deploy --cluster NAME rolls it out",
        )
        CfnOutput(self, "UsualTime", value=takes)
        CfnOutput(self, "Logs", value=image.logs, description="Of each build and test")
        CfnOutput(self, "StaysAfterDestroy", value=stays, description="What cdk destroy leaves")
