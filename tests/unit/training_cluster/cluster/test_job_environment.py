"""Variables of jobs about their nodes: rendered from the catalog and the flags, and installed by step 60."""

import subprocess
from pathlib import Path

from ops.jobs.lookup import parse_facts
from tests.unit.assets.bootstrap.step_machine import Machine
from training_cluster.cluster.job_environment import render_job_environments, render_links
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.rules.context import read_settings


def environments(**flags: str) -> dict[str, str]:
    settings = read_settings(flags)
    return render_job_environments(config_before_deploy(settings), settings)


def variables(partition: str, **flags: str) -> dict[str, str]:
    return parse_facts(environments(**flags)[partition])


def test_ranks_a_node_are_gpus_cores_or_one() -> None:
    """Trainium's as in aws-neuron-sdk, archive/nxd-training/mlp.rst; on trn2 two cores are a logical one."""
    for family, size, ranks in (
        ("p5", "p5.48xlarge", "8"),
        ("trn1", "trn1.2xlarge", "2"),
        ("trn1", "trn1.32xlarge", "32"),
        ("trn2", "trn2.3xlarge", "4"),
        ("trn2", "trn2.48xlarge", "64"),
        ("m6i", "m6i.32xlarge", "1"),
    ):
        (text,) = environments(family=family, instance_type=size).values()
        assert f"export RANKS_PER_NODE='{ranks}'\n" in text, size


def test_a_job_knows_what_its_nodes_should_reach() -> None:
    known = variables("gpu", family="p4d")
    assert (known["COMPUTE_CAPABILITY"], known["NETWORK_GBPS"]) == ("8.0", "400.0")
    assert known["NCCL_FLOORS"] == "2:1:41"
    known = variables("cpu", family="m6i")
    assert (known["COMPUTE_CAPABILITY"], known["NCCL_FLOORS"], known["PLACEMENT_GROUP"]) == ("", "", "no")
    assert "FI_EFA_USE_HUGE_PAGE" not in known
    # Data workers can be forked where there is EFA.
    known = variables("gpu", family="p5")
    assert (known["EFA_INTERFACES"], known["FI_EFA_USE_HUGE_PAGE"]) == ("32", "0")


def test_a_job_may_tune_its_own_network(tmp_path: Path) -> None:
    """NCCL reads the defaults from its file, which containers have too; a variable wins over it."""
    node = Machine(tmp_path)
    (node.bundle / "partitions").mkdir()
    (node.bundle / "partitions" / "gpu.env").write_text(environments(family="p5")["gpu"])
    script = f"set -eu; source {node.bundle}/partitions/gpu.env; echo $NCCL_SOCKET_IFNAME $FAMILY"
    given = {"NCCL_SOCKET_IFNAME": "ens32", "FAMILY": "mine"}
    done = subprocess.run(["bash", "-c", script], env=given, capture_output=True, text=True, check=True)
    assert done.stdout == "ens32 p5\n"
    file = node.root / "etc/nccl.conf"
    node.does("60", PARTITION="gpu")
    assert file.read_text().splitlines()[1:] == ["NCCL_SOCKET_IFNAME=^docker,lo,veth"]
    file.write_text("NCCL_DEBUG=WARN\n")
    node.does("60", PARTITION="gpu")
    assert file.read_text() == "NCCL_DEBUG=WARN\n", "an administrator's own"


def test_a_job_knows_purchase_and_lustre() -> None:
    def bought(partition: str = "gpu", **flags: str) -> tuple[str, str]:
        known = variables(partition, **flags)
        return known["CAPACITY"], known["PLACEMENT_GROUP"]

    assert bought() == ("ondemand", "yes")
    assert bought(capacity="spot", placement_group="mine") == ("spot", "yes")
    assert bought(capacity="capacity-block:cr-0123456789abcdef0") == ("capacity-block", "no")
    assert bought("cpu", capacity="spot", cpu_queue="on") == ("ondemand", "no")
    for flags, written, read in (
        ({}, "292", "750"),
        ({"fsx_gib": "2400", "fsx_mbps_per_tib": "1000"}, "2343", "6093"),
        ({"fsx_type": "scratch2"}, "117", "234"),
        ({"fsx_id": "fs-0123456789abcdef0"}, "", ""),
    ):
        known = variables("gpu", **flags)
        assert (known["SHARED_MBPS"], known["SHARED_READ_MBPS"]) == (written, read)


def test_jobs_on_several_types_know_common_values(tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text(
        "mixed: {instance_types: [g6.12xlarge, g4dn.12xlarge]}\n"
        "train: {compute_resources: [{name: a, family: p5}, {name: b, family: p5en}]}\n"
    )
    known = variables("mixed", queues=str(file))
    assert (known["FAMILY"], known["INSTANCE_TYPE"]) == ("g6 g4dn", "g6.12xlarge g4dn.12xlarge")
    assert (known["ACCELERATORS_PER_NODE"], known["RANKS_PER_NODE"]) == ("4", "4")
    assert known["MIXED_PRECISION"] == "fp16"
    assert (known["COMPUTE_CAPABILITY"], known["ACCELERATOR_PEAK_TFLOPS"]) == ("", "")
    assert "NCCL_SOCKET_IFNAME" not in known
    known = variables("train", queues=str(file))
    assert known["EFA_INTERFACES"] == "0", "the interfaces of a node are not known"
    assert known["FI_EFA_USE_HUGE_PAGE"] == "0"


def test_overrides_decide_where_local_disks_are(tmp_path: Path) -> None:
    def scratch(storage: str, **flags: str) -> str:
        file = tmp_path / "overrides.yaml"
        file.write_text(
            f"Scheduling: {{SlurmQueues: [{{Name: gpu, ComputeSettings: {{LocalStorage: {storage}}}}}]}}\n"
        )
        return variables("gpu", overrides=str(file), **flags)["SCRATCH"]

    assert scratch("{EphemeralVolume: {MountDir: /local_scratch}}") == "/local_scratch"
    assert scratch("{EphemeralVolume: {MountDir: local}}") == "/local"
    assert scratch("{EphemeralVolume: null}") == "/scratch", "ParallelCluster's default"
    assert scratch("{EphemeralVolume: {MountDir: /x}}", family="m6i", queue_name="gpu") == "", "no such disks"


def test_a_job_knows_folders_and_the_bucket(tmp_path: Path) -> None:
    (users := tmp_path / "users.yaml").write_text("users: {alice: {uid: 5001}}\n")
    line = 'export TRAINING_UPLOADS="users/${SLURM_JOB_USER-}"\n'
    assert [line in environments(**each)["gpu"] for each in ({}, {"users": str(users)})] == [False, True]
    assert "/lustre /fsx" in render_links(read_settings({"family": "p3dn"}))
    assert "/neuron_shared /efs" in render_links(read_settings({"family": "trn1"}))
    node = Machine(tmp_path)
    assert bucket(node) == "p4d"
    (node.etc / "bootstrap-arguments").write_text("s3://team-data-1/bootstrap/training\n")
    assert bucket(node) == "p4d team-data-1"
    assert bucket(node) == "p4d team-data-1", "a second run adds nothing"


def bucket(node: Machine) -> str:
    (node.bundle / "partitions").mkdir(exist_ok=True)
    (node.bundle / "partitions" / "gpu.env").write_text("export FAMILY='p4d'\n")
    node.does("60")
    file = node.etc / "partitions" / "gpu.env"
    script = f"set -eu; source {file}; echo $FAMILY ${{TRAINING_BUCKET-unset}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.strip()
