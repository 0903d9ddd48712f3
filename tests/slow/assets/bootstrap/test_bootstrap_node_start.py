"""Nodes start in throw-away machines: every step that needs no hardware runs for real, and fails for real.

S3 alone is played (tests/slow/node_root/stand_ins/aws.sh). Not run here is what NOT_RUN names.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from tests.slow.node_root.disk import Disk, Entry
from tests.slow.node_root.image_build import build_image
from tests.slow.node_root.node import Bucket, Node, new_node, step_messages
from training_cluster.catalog.steps import NODES, load_steps
from training_cluster.paths import ASSETS
from training_cluster.rules.context import read_settings

pytestmark = [pytest.mark.slow, pytest.mark.root]

RECIPE = "cpu"
WORKLOAD = "gpt2"
FLAGS = {"family": "m6i", "login_nodes": "1", "workloads": WORKLOAD}
SETTINGS = read_settings(FLAGS)
BUILT = read_settings({**FLAGS, "image": "build"})
# Its own takes minutes; rehearsals make it.
REQUIREMENTS = "# Recipes: all\n# Budget: 300 s\niniconfig==2.3.1\n"
STAMPS = "/var/lib/training-cluster/stamps/"
DONE, SKIPPED = "done", "skipped (done before)"

# What the tests here do not run, and why. Their texts are checked (tools/check.sh), their commands are
# stubbed (tests/unit), and the first deploy's checklist looks at them.
NOT_RUN = {
    "30-install-volta-driver": "compiles a kernel module",
    "32-install-volta-toolkit": "7 GB of CUDA, for GPUs",
    "34-install-neuron": "compiles a kernel module and loads it",
    "42-check-dcgm": "asks NVIDIA's DCGM, which the GPU images have",
    "44-install-enroot": "NVIDIA's packages, for GPU nodes",
    "46-build-nccl-tests": "compiles with nvcc, for GPUs",
    "48-build-megatron": "compiles with nvcc, for GPUs",
    "66-tune-xeon": "sets the kernel, which is this machine's",
    "89-await-fabric": "waits for GPUs",
}

# Each start writes these again, by a rename, and they are the same.
WRITTEN_AGAIN = ("/etc/training-cluster/bootstrap-arguments", "/etc/training-cluster/partitions/cpu.env")
GROWS = ("/var/log/training-cluster/", "/tmp/")

MakeNode = Callable[..., Node]


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the sources of bundles, with a workload whose environment is small."""
    copy = shutil.copytree(
        ASSETS, tmp_path_factory.mktemp("bundle") / "assets", ignore=shutil.ignore_patterns("__pycache__")
    )
    (copy / "training" / WORKLOAD / "requirements.txt").write_text(REQUIREMENTS)
    (copy / "training" / WORKLOAD / "requirements.lock").unlink()
    return copy


@pytest.fixture
def bucket(tmp_path: Path, assets: Path) -> Bucket:
    return Bucket(folder=tmp_path / "s3", settings=SETTINGS, assets=assets)


@pytest.fixture
def make_node(bucket: Bucket) -> Iterator[MakeNode]:
    """Return a function that makes nodes that are about to start with the bucket's bundle."""
    with ExitStack() as nodes:

        def make(
            *, bucket: Bucket = bucket, node_type: str = "ComputeFleet", image: Disk | None = None
        ) -> Node:
            node = nodes.enter_context(new_node(bucket=bucket, node_type=node_type, image=image))
            node.boot(bucket.publish())
            return node

        yield make


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, assets: Path) -> Iterator[tuple[Disk, dict[str, str]]]:
    """Yield the disk of an image build, and its message of each step."""
    bucket = Bucket(folder=tmp_path_factory.mktemp("s3"), settings=BUILT, assets=assets)
    bucket.publish()
    with new_node(bucket=bucket) as builder:
        done = build_image(builder.machine, bucket)
        assert done.returncode == 0, done.stderr
        yield builder.machine.disk, step_messages(done)


@pytest.fixture
def image(built: tuple[Disk, dict[str, str]]) -> Disk:
    return built[0]


def installed() -> set[str]:
    """Return the names of the steps that can install something on a node without accelerators."""
    return {s.name for s in load_steps() if s.moment == "install" and RECIPE in s.recipes} - set(NOT_RUN)


def entries(node: Node) -> dict[str, Entry]:
    found = node.machine.disk.entries(*GROWS)
    return found | {path: replace(found[path], changed_ns=0) for path in WRITTEN_AGAIN if path in found}


def same(before: dict[str, Entry], after: dict[str, Entry]) -> bool:
    """Return True if two disks are equal; print the differences."""
    different = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    for path in different:
        print(path, before.get(path), after.get(path))
    return not different


def test_a_second_start_of_every_step_changes_nothing(
    make_node: MakeNode, built: tuple[Disk, dict[str, str]]
) -> None:
    """Every step runs here, or NOT_RUN says why.

    Head and login nodes have no image of ours: what both install at their start is installed once, here.
    """
    image, of_the_build = built
    said = [of_the_build]
    for node_type in NODES:
        has_image = node_type != "HeadNode"
        node = make_node(node_type=node_type, image=image if has_image else None)
        first = node.start(network=not has_image)
        assert first.returncode == 0, first.stderr
        before = entries(node)
        second = node.start(network=False)
        assert second.returncode == 0, second.stderr
        mine = {
            s.name
            for s in load_steps()
            if s.name in installed() and node_type in s.nodes and "cloudwatch" in s.metrics
        }
        assert mine
        for done in (first, second)[not has_image :]:
            assert {step_messages(done)[step] for step in mine} == {SKIPPED}
        assert same(before, entries(node))
        said.append(step_messages(first))
    ran = {step for lines in said for step, result in lines.items() if result == DONE}
    assert {step for lines in said for step, result in lines.items() if "failed" in result} <= set(NOT_RUN)
    assert ran.isdisjoint(NOT_RUN)
    of_a_store = {step.name for step in load_steps() if "cloudwatch" not in step.metrics}
    assert ran | set(NOT_RUN) | of_a_store == {step.name for step in load_steps()}


def test_a_start_finishes_what_lost_power(make_node: MakeNode, image: Disk) -> None:
    node = make_node(image=image)
    environment = f"/opt/training-cluster/venvs/{WORKLOAD}"
    node.run(f"rm -r {environment} {STAMPS}50-install-workloads")
    with node.process("start") as started:
        half = node.machine.disk.written / environment.lstrip("/") / "lib"
        while not half.exists() and started.poll() is None:
            time.sleep(0.05)
        started.kill()
    assert started.returncode == -9
    done = node.run(f"start && {environment}/bin/python -c 'import iniconfig'")
    assert done.returncode == 0, done.stderr
    assert step_messages(done)["50-install-workloads"] == DONE


INSTALLS = """\
start >/dev/null
source /opt/training-cluster/bundles/current/bootstrap/lib/installer.sh
as_installer /opt/tried bash -c 'id -un; touch /opt/tried/made; chmod 4777 /opt/tried/made
  grep ^Cap[PE] /proc/self/status; touch /etc/made || echo kept out; sleep 1000 & exit 3' || echo "status $?"
stat --format '%U %a' /opt/tried/made /opt/training-cluster/venvs/WORKLOAD
pgrep -u training-installer || echo alone
"""


def test_installers_may_write_to_one_folder(make_node: MakeNode, image: Disk) -> None:
    done = make_node(image=image).run(INSTALLS.replace("WORKLOAD", WORKLOAD))
    none = "0" * 16
    assert done.stdout.splitlines() == [
        "training-installer",
        f"CapPrm:\t{none}",
        f"CapEff:\t{none}",
        "kept out",
        "status 3",
        "root 755",
        "root 755",
        "alone",
    ], done.stderr


def test_prometheus_and_its_exporters_are_enabled(
    tmp_path: Path, assets: Path, make_node: MakeNode, image: Disk
) -> None:
    settings = read_settings({**FLAGS, "metrics": "prometheus"})
    bucket = Bucket(folder=tmp_path / "metrics", settings=settings, assets=assets)
    enabled = {"HeadNode": {"node-exporter", "prometheus"}, "ComputeFleet": {"node-exporter"}}
    for node_type, units in enabled.items():
        node = make_node(bucket=bucket, node_type=node_type, image=image)
        started = node.start()
        assert started.returncode == 0, started.stderr
        said = step_messages(started)
        steps = {name: said[name] for name in said if name[:2] in ("86", "87", "88")}
        assert set(steps.values()) == {DONE}, steps
        look = node.run(
            "ls /etc/systemd/system/multi-user.target.wants; systemctl is-enabled prometheus-node-exporter; "
            "ls /var/lib/dpkg/info/prometheus-node-exporter.list"
        )
        for unit in units:
            assert f"training-cluster-{unit}.service" in look.stdout
        # The package's own unit, which listens on every address, never starts.
        assert "masked" in look.stdout
        assert "prometheus-node-exporter.list" in look.stdout


@pytest.mark.parametrize(
    ("room", "said"),
    [
        ("32k", "no space left on the disk of /opt/training-cluster/bundles/"),
        ("8M", "MiB left: could not create the environment of gpt2"),
    ],
    ids=["for the bundle", "for what is installed"],
)
def test_a_full_disk_is_reported_and_survived(make_node: MakeNode, image: Disk, room: str, said: str) -> None:
    opt = "/opt/training-cluster"
    node = make_node(image=image)
    done = node.run(
        # A disk that holds what is there, with so much room. The environment is to be made again.
        f"rm -r {opt}/venvs {STAMPS}50-install-workloads\n"
        f"mount -t tmpfs tmpfs /mnt; cp -a {opt}/. /mnt\n"
        f"used=$(df --block-size=1k --output=used /mnt | tail -n 1)\n"
        f"mount -o remount,size=$((used * 1024 + $(numfmt --from=iec {room.upper()}))) /mnt\n"
        f"mount --move /mnt {opt}; start && exit 1\n"
        f"echo 'now with space' >&2; mount -o remount,size=1g {opt}; start\n"
        f"{opt}/venvs/{WORKLOAD}/bin/python -c 'import iniconfig'"
    )
    assert done.returncode == 0, done.stderr
    full, _, _ = done.stderr.partition("now with space")
    assert said in full.strip().splitlines()[-1]


def test_a_users_script_runs_after_the_setup(
    bucket: Bucket, make_node: MakeNode, image: Disk, tmp_path: Path
) -> None:
    hook, overrides = tmp_path / "hook.sh", tmp_path / "mine.yaml"
    hook.write_text(
        '#!/bin/bash\ntest -e /etc/training-cluster/partitions/cpu.env\necho "$@" >/var/log/hook\n'
    )
    overrides.write_text(
        "Scheduling: {SlurmQueues: [{Name: cpu, CustomActions: {OnNodeConfigured: "
        "{Script: 'file://hook.sh', Args: [one, two]}}}]}\n"
    )
    with_hook = replace(bucket, settings=read_settings({**FLAGS, "overrides": str(overrides)}))
    node = make_node(bucket=with_hook, image=image)
    done = node.start()
    assert done.returncode == 0, done.stderr
    assert node.run("cat /var/log/hook").stdout == "one two\n"
    hook.write_text("#!/bin/bash\nexit 7\n")
    broken = replace(bucket, settings=read_settings({**FLAGS, "overrides": str(overrides)}))
    assert make_node(bucket=broken, image=image).start().returncode == 7
