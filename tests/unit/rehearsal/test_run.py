"""The rehearsal of a family."""

from rehearsal.run import region_of
from training_cluster.catalog.families import family_names, load_family


def test_each_family_is_rehearsed_in_an_available_region() -> None:
    regions = {name: region_of(load_family(name)) for name in family_names()}
    elsewhere = {name: region for name, region in regions.items() if region != "us-east-1"}
    assert elsewhere == {"hpc7a": "us-east-2", "p5e": "us-east-2", "trn2": "us-east-2"}
