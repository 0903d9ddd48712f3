"""Rules about the flags that adjust nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from training_cluster.catalog.families import load_base
from training_cluster.problems import Contradiction

if TYPE_CHECKING:
    from training_cluster.flags.settings import Settings


def _root_volume_holds_the_image(settings: Settings) -> Iterator[Contradiction]:
    given, recipe = settings.compute_root_gib, settings.family_facts.image_recipe
    least = load_base().image_recipes[recipe].root_gib
    if given and settings.node_image == "build" and given < least:
        yield Contradiction(
            problem=f"compute_root_gib={given}: the image that ImageStack builds has {least} GiB",
            mend=f"-c compute_root_gib={least}",
        )


TUNING_RULES = (_root_volume_holds_the_image,)
