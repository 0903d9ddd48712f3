"""Model of one kind of node image: an entry of base.yaml's image_recipes."""

from pydantic import Field

from training_cluster.catalog.family import INSTANCE_TYPE, Strict


class ImageRecipe(Strict):
    """Content of a recipe's images, and the instance that builds them."""

    description: str = Field(max_length=200, description="content other than the steps' packages")
    build_instance_type: str = Field(pattern=INSTANCE_TYPE, description="no GPU is needed to compile for one")
    root_gib: int = Field(
        gt=0, description="root volume of the image; at most the root volume of any queue that takes it"
    )
    usual_min: int = Field(gt=0, description="minutes of a build with its test, as estimated")
