"""bootstrap.sh as a node runs it; `aws s3 cp` is a copy from a folder here (the slow tests use S3)."""

from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.bootstrap_node import Node
from training_cluster.catalog.families import load_base
from training_cluster.catalog.steps import budget_s, start_steps


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_the_head_node_gets_environment_folders_and_scripts(node: Node) -> None:
    node.publish()
    done = node.boot()
    assert done.returncode == 0, done.stderr
    assert "FAMILY='p4d'" in node.environment("gpu").read_text()
    assert (node.shared / "training" / "job.slurm").is_file()
    assert (node.root / "efs").stat().st_mode & 0o7777 == 0o1777
    for folder in ("datasets", "checkpoints", "runs", "venvs"):
        assert (node.shared / folder).stat().st_mode & 0o7777 == 0o1777


def test_a_compute_node_leaves_the_shared_folder_alone(node: Node) -> None:
    node.publish()
    assert node.boot(node_type="ComputeFleet").returncode == 0
    assert node.environment("gpu").is_file()
    assert list(node.shared.iterdir()) == []


@pytest.mark.slow
def test_a_second_boot_changes_nothing_that_jobs_see(node: Node) -> None:
    node.publish()
    node.boot()
    checkpoint = node.shared / "checkpoints" / "step-1"
    checkpoint.write_text("precious")
    before = node.files()
    assert node.boot().returncode == 0
    after = node.files()
    assert before.keys() == after.keys()
    assert {path for path in after if before[path] != after[path]} == {
        str(node.environment("gpu")),
        str(node.root / "etc" / "bootstrap-arguments"),
    }


@pytest.mark.slow
def test_a_changed_script_replaces_the_old_ones_at_once(node: Node) -> None:
    node.publish()
    node.boot()
    (node.shared / "training" / "job.slurm").write_text("changed by hand\n")
    digest = node.publish("m6i")
    done = node.boot(f"bundle-sha256={digest}")
    assert done.returncode == 0, done.stderr
    assert (node.shared / "training" / "job.slurm").read_text().startswith("#!/usr/bin/env bash")
    assert "FAMILY='m6i'" in node.environment("cpu").read_text()


def test_a_damaged_bundle_is_refused_and_nothing_is_installed(node: Node) -> None:
    digest = node.publish()
    (node.prefix / f"bundle-{digest}.tar.gz").write_bytes(b"half of it")
    done = node.boot()
    assert done.returncode == 1
    assert "is not the bundle of the cluster config" in done.stderr.splitlines()[-1]
    assert not (node.root / "etc").exists()
    assert list(node.bundles.iterdir()) == []


@pytest.mark.slow
def test_of_two_bundles_a_node_takes_the_one_that_its_cluster_config_names(node: Node) -> None:
    old = node.publish()
    node.publish("m6i")
    node.want(old)
    assert node.boot().returncode == 0
    assert node.environment("gpu").is_file()
    assert not node.environment("cpu").exists()


@pytest.mark.slow
def test_a_bundle_that_is_there_is_not_fetched_again(node: Node) -> None:
    digest = node.publish()
    node.boot()
    (node.prefix / f"bundle-{digest}.tar.gz").unlink()
    done = node.boot()
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_current_bundle_and_its_source_are_noted_for_the_prolog(node: Node) -> None:
    digest = node.publish()
    node.boot()
    assert (node.bundles / "current").readlink() == Path(digest)
    assert (node.root / "etc" / "bootstrap-arguments").read_text() == "s3://bucket/bootstrap/training\n"


@pytest.mark.slow
def test_a_bundle_whose_steps_failed_is_not_the_current_one(node: Node) -> None:
    digest = node.publish()
    node.boot()
    (node.root / "assets" / "bootstrap" / "steps" / "99-fail.sh").write_text(
        "# Moment: start\n# Recipes: all\n# Nodes: all\n"
        "# Where: any\n# Required: yes\n# Budget: 9 s\nexit 1\n"
    )
    node.publish()
    assert node.boot().returncode == 1
    assert (node.bundles / "current").readlink() == Path(digest)


@pytest.mark.parametrize("config", [None, "HeadNode: {}\n"], ids=["no config", "no checksum in it"])
def test_a_node_that_is_told_no_checksum_runs_nothing(node: Node, config: str | None) -> None:
    node.publish()
    path = node.slash / "opt" / "parallelcluster" / "shared" / "cluster-config.yaml"
    path.unlink() if config is None else path.write_text(config)
    done = node.boot()
    assert done.returncode == 1
    assert str(path) in done.stderr.splitlines()[-1]
    assert not node.bundles.exists()


def test_a_login_node_reads_the_config_that_login_nodes_have(node: Node) -> None:
    node.publish()
    (node.slash / "opt" / "parallelcluster" / "shared" / "cluster-config.yaml").unlink()
    assert node.boot(node_type="LoginNode").returncode == 0
    assert node.boot(node_type="ComputeFleet").returncode == 1


def test_an_argument_that_is_no_checksum_is_refused(node: Node) -> None:
    node.publish()
    done = node.boot("0" * 64)
    assert done.returncode == 1
    assert "is not a checksum: usage: bootstrap.sh" in done.stderr.splitlines()[-1]


def test_a_missing_object_is_tried_again_and_then_named(node: Node) -> None:
    node.want("0" * 64)
    done = node.boot()
    assert done.returncode == 1
    assert "attempt 5 of 5" in done.stderr
    assert (
        f"gave up on s3://bucket/bootstrap/training/bundle-{'0' * 64}.tar.gz" in done.stderr.splitlines()[-1]
    )


def test_an_unknown_node_type_is_refused(node: Node) -> None:
    node.publish()
    done = node.boot(node_type="Toaster")
    assert done.returncode == 1
    assert "unknown node type 'Toaster'" in done.stderr


def test_every_node_has_the_seeds_paths_of_the_shared_folders(node: Node) -> None:
    node.publish("trn1")
    assert node.boot(node_type="ComputeFleet").returncode == 0
    links = {p.name: str(p.readlink()) for p in node.slash.iterdir() if p.is_symlink()}
    assert links == {"lustre": "/fsx", "neuron_shared": "/efs"}


@pytest.mark.slow
def test_with_home_on_efs_its_shared_folder_is_a_link_into_it(node: Node) -> None:
    node.publish("trn1", home="efs")
    assert node.boot().returncode == 0
    assert (node.root / "slash" / "efs").readlink() == Path("/home/efs")
    assert (node.root / "slash" / "neuron_shared").readlink() == Path("/efs")
    assert (node.root / "slash" / "home" / "efs").is_dir()


@pytest.mark.slow
def test_what_stands_in_a_links_place_is_left_alone_and_said(node: Node) -> None:
    node.publish()
    mine = node.root / "slash" / "lustre" / "mine"
    mine.parent.mkdir(parents=True)
    mine.write_text("precious")
    done = node.boot()
    assert done.returncode == 0
    assert "lustre exists already: not linked to /fsx" in done.stderr
    assert mine.read_text() == "precious"


@pytest.mark.slow
def test_an_efs_that_somebody_uses_keeps_its_root_as_it_is(node: Node) -> None:
    node.publish()
    (node.root / "efs" / "theirs").mkdir(parents=True)
    before = (node.root / "efs").stat().st_mode
    assert node.boot().returncode == 0
    assert (node.root / "efs").stat().st_mode == before


def test_the_head_node_has_time_for_all_its_steps() -> None:
    base = load_base()
    ours = budget_s(start_steps(node="HeadNode", recipe="cpu"))
    assert base.compute_node.boot_s + ours <= base.head_node.bootstrap_timeout_s
