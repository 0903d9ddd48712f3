"""The combinations that `make validate` checks."""

import pytest

from rehearsal.validation.cases import CAPACITIES, FEATURES, OS_NAMES, REFUSED_BY_US_ALONE, all_cases
from training_cluster.catalog.families import family_names, load_family


@pytest.mark.slow
def test_every_family_way_of_buying_system_and_size_is_a_case() -> None:
    cases = list(all_cases())
    families = [(case.row, case.column, case.os_name) for case in cases if case.table == "family"]
    assert len(set(families)) == len(families) == len(family_names()) * len(CAPACITIES) * len(OS_NAMES)
    sizes = {case.column for case in cases if case.table == "size"}
    assert sizes == {each for name in family_names() for each in load_family(name).sizes}
    assert len({case.name for case in cases}) == len(cases)
    assert set(REFUSED_BY_US_ALONE) <= set(FEATURES)
