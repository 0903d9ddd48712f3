"""The bundle of scripts: its bytes depend on content alone, and settings of jobs and metrics are in it."""

import io
import os
import shutil
import tarfile
from pathlib import Path

from tests.unit.training_cluster.rules.test_rules import WORKSPACE
from training_cluster.cluster.bundle import bootstrap_budget_s, build_bundle, render_metrics, render_prices
from training_cluster.paths import ASSETS
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.rules.context import read_settings
from training_cluster.stack_names import DEFAULT_CLUSTER, rules_topic


def _bundle(assets: Path = ASSETS, **flags: str) -> bytes:
    settings = read_settings(flags)
    return build_bundle(settings=settings, config=config_before_deploy(settings), assets=assets)


def test_the_same_content_is_the_same_bundle(tmp_path: Path) -> None:
    """Wherever and whenever it is made, and whatever tools leave in the folders."""
    copy = shutil.copytree(ASSETS, tmp_path / "assets")
    for name in (".mypy_cache/3.11/a.json", "__pycache__/a.pyc", ".DS_Store"):
        path = copy / "training" / "gpt2" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("left")
    for path in copy.rglob("*"):
        os.utime(path, (1, 1))
    bundle = _bundle(copy)
    assert bundle == _bundle()
    assert bundle[4:8] == bytes(4), "gzip's header holds the time of day"
    assert bundle != _bundle(family="m6i")
    (copy / "training" / "job.slurm").write_text("#!/bin/bash\n")
    assert bundle != _bundle(copy)


def test_the_bundle_holds_the_scripts_with_their_modes() -> None:
    with tarfile.open(fileobj=io.BytesIO(_bundle()), mode="r:gz") as archive:
        assert {"training/job.slurm", "training/gpt2/train.sh"} <= set(archive.getnames())
        assert archive.getmember("bootstrap/bootstrap.sh").mode == 0o755
        assert archive.getmember("partitions/gpu.env").mode == 0o644


def test_the_bundle_has_the_settings_of_the_steps() -> None:
    lines = render_metrics(
        read_settings(
            {
                **{"metrics": "amp", "metrics_workspace": WORKSPACE},
                **{"alarm_email": "me@example.com", "budget_usd": "500", "topology": "off"},
            }
        )
    )
    assert lines.splitlines() == [
        "export METRICS='amp'",
        "export METRICS_WORKSPACE='https://aps-workspaces.us-east-1.amazonaws.com/workspaces/"
        "ws-01234567-0123-4567-89ab-0123456789ab'",
        f"export METRICS_TOPIC='{rules_topic(DEFAULT_CLUSTER)}'",
        "export METRICS_WEBHOOK_SECRET=''",
        "export METRICS_BUDGET_USD='500'",
        "export TOPOLOGY='off'",
    ]


def test_prices_and_time_are_as_asked() -> None:
    settings = read_settings({"family": "p4d", "cpu_queue": "on"})
    lines = render_prices(config_before_deploy(settings)).splitlines()
    words = [line.split() for line in lines]
    assert [line[:2] for line in words] == [["head", "-"], ["gpu", "p4d"], ["cpu", "m6i-16xlarge"]]
    assert all(float(usd) > 0 for *_, usd in words)
    default, prometheus = read_settings({}), read_settings({"metrics": "prometheus"})
    assert bootstrap_budget_s(prometheus) == bootstrap_budget_s(default) + 110 + 60
    built = {"image": "build"}
    of_built = bootstrap_budget_s(read_settings(built))
    assert bootstrap_budget_s(read_settings(built | {"metrics": "prometheus"})) == of_built + 60
    assert not default.head_node_sends and not prometheus.head_node_sends, "its alerts go nowhere"
    assert read_settings({"metrics": "prometheus", "alarm_email": "me@example.com"}).head_node_sends
