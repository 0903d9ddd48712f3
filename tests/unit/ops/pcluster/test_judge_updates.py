"""The real library, in its own environment, as judge of an update."""

import pytest

from ops.pcluster.update_policies import ask_library
from training_cluster.cluster.config import render_cluster_config
from training_cluster.cluster.resource_ids import placeholders
from training_cluster.rules.context import read_settings


@pytest.mark.slow
@pytest.mark.parametrize(
    ("after", "running", "stopped"),
    [({"nodes": "4"}, False, False), ({"capacity": "spot"}, True, False), ({"os": "ubuntu2204"}, True, True)],
    ids=["live", "idle", "never"],
)
def test_the_library_judges_running_and_stopped_fleets(
    after: dict[str, str], running: bool, stopped: bool
) -> None:
    ids = placeholders(image_id="ami-0123456789abcdef0", bootstrap_budget_s=600)
    configs = [render_cluster_config(settings=read_settings(flags), ids=ids) for flags in ({}, after)]
    (answer,) = ask_library([(configs[0], configs[1])])
    assert bool(answer.running) is running
    assert bool(answer.stopped) is stopped
