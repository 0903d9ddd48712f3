"""A cluster with real users on this machine, in a mount namespace whose /etc is a copy."""

import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ops.account.head_node import CommandError, HeadNode
from rehearsal.local_slurm import LocalSlurm, NodeSet, NodeShape, Partition
from rehearsal.local_slurm.node_program import BRIDGE
from rehearsal.people.attacks import VENVS
from rehearsal.problems import RehearsalError
from training_cluster.cluster.bundle import build_bundle
from training_cluster.flags.settings import Settings
from training_cluster.paths import ROOT
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.queues.queue import Queue

INSIDE = "TRAINING_CLUSTER_PEOPLE"
"""Variable of the program that runs in the namespace."""
SHORT = Path("/mnt")
"""Path of the folder in the namespace, short enough for Slurm's sockets and accessible to all users."""
NODES = 4
SSHD = ROOT / ".cache" / "sshd"
"""Unpacked packages of sshd and pam_slurm_adopt, by make setup."""
SITE = SHORT / "site-packages"
"""Packages of an environment with torch, if there is one; SHORT / python is its Python."""
_HEAD = "10.77.0.1"
ROOT_OF_NODES = SHORT / "root"
"""TRAINING_ROOT of the prolog, the epilog and the nodes, each of which has etc and run in it for itself."""
Said = subprocess.CompletedProcess[str]
_STEPS = ("60", "70", "71", "75", "78")


def enter(folder: Path, arguments: list[str]) -> None:
    """Start this program again in a mount namespace, with `folder` at SHORT and a copy of /etc. Needs root.

    Raises RehearsalError for another user.
    """
    if os.geteuid() != 0:
        raise RehearsalError(
            "A rehearsal with several users must run as root, which creates them in a copy of /etc.\n"
            "  type:   sudo make rehearse USERS=2"
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    subprocess.run(["cp", "--archive", "/etc", str(folder)], check=True)
    os.environ[INSIDE] = "1"
    again = [sys.executable, "-m", "rehearsal.people", *arguments]
    script = (
        f'set -e; mount --bind "$0/etc" /etc; mount --bind "$0" {SHORT}\n'
        "mkdir -p /run/netns; mount -t tmpfs tmpfs /run/netns; ip link set lo up\n"
        f"ip link add {BRIDGE} type bridge; ip address add {_HEAD}/24 dev {BRIDGE}; ip link set {BRIDGE} up\n"
        'exec "$@"'
    )
    own = ["unshare", "--mount", "--net", "--propagation", "private"]
    command = [*own, "sh", "-c", script, str(folder), *again]
    os.execvp(command[0], command)  # noqa: S606 - no shell is meant


@dataclass
class World:
    """The cluster's folders, its Slurm, and commands of its users."""

    settings: Settings
    has_accounting: bool = True
    slurm: LocalSlurm = field(init=False)

    def __post_init__(self) -> None:
        """Describe the Slurm; `begin` starts it."""
        config = config_before_deploy(self.settings)
        queues, lines = config["Scheduling"]["SlurmQueues"], config["Scheduling"]["SlurmSettings"]
        partitions = [
            Partition(name=queue.name, node_sets=(_nodes(queue),), settings=rendered["CustomSlurmSettings"])
            for queue, rendered in zip(self.settings.all_queues, queues, strict=True)
        ]
        self.slurm = LocalSlurm(
            root=SHORT / "slurm",
            partitions=partitions,
            marker=(INSIDE, str(os.getpid())),
            accounting=self.has_accounting,
            for_all=True,
            settings=lines["CustomSlurmSettings"],
            prolog=ROOT_OF_NODES / "opt/slurm/etc/scripts/prolog.d",
            controller=_HEAD,
            begin=Path(__file__).with_name("begin-node.sh"),
        )
        self._prepare_nodes()

    def _prepare_nodes(self) -> None:
        """Write what nodes read of /etc, and the script that makes each a compute node with its own sshd."""
        lines = (f"10.77.0.{n} {name}\n" for n, name in enumerate(self.slurm.node_names, start=2))
        with Path("/etc/hosts").open("a") as hosts:
            hosts.writelines(lines)
        Path("/etc/slurm").mkdir(exist_ok=True)
        for file in (self.slurm.layout.conf, self.slurm.layout.cgroup_conf):
            (Path("/etc/slurm") / file.name).unlink(missing_ok=True)
            (Path("/etc/slurm") / file.name).symlink_to(file)
        ROOT_OF_NODES.mkdir(exist_ok=True)
        self._share_python()
        if SSHD.is_dir():
            for name in ("sshd", "clusteruser"):
                subprocess.run(["useradd", "--no-create-home", name], capture_output=True, check=False)
            for key in ("key", "host-key"):
                subprocess.run(["ssh-keygen", "-q", "-N", "", "-f", str(SHORT / key)], check=True)
            (SHORT / "sshd_config").write_text(
                f"HostKey {SHORT}/host-key\nAuthorizedKeysFile {SHORT}/key.pub\nUsePAM yes\nStrictModes no\n"
            )

    def _share_python(self) -> None:
        """Mount the Python of an environment with torch where all users can read it."""
        for python in sorted(VENVS.glob("gpt2*/bin/python"))[:1]:
            ask = "import sys, sysconfig; print(sys.base_prefix, sysconfig.get_path('purelib'))"
            done = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True)
            for source, target in zip(done.stdout.split(), (SHORT / "python", SITE), strict=True):
                target.mkdir()
                subprocess.run(["mount", "--bind", source, str(target)], check=True)

    @property
    def variables(self) -> dict[str, str]:
        """Folders of the cluster, for the bootstrap and for jobs."""
        folders = {
            "TRAINING_SHARED": SHORT / "fsx",
            "TRAINING_EFS": SHORT / "efs",
            "TRAINING_ETC": SHORT / "cluster",
        }
        return {name: str(folder) for name, folder in folders.items()}

    def boot(self, training: Mapping[str, str]) -> None:
        """Unpack the bundle of these settings, with more files in training/, and boot a head node."""
        bundle = SHORT / "bundle"
        shutil.rmtree(bundle, ignore_errors=True)
        packed = build_bundle(settings=self.settings, config=config_before_deploy(self.settings))
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(bundle)  # noqa: S202 - our own; Debian 12's Python has no filter
        for name, text in training.items():
            (bundle / "training" / name).parent.mkdir(exist_ok=True)
            (bundle / "training" / name).write_text(text)
        for folder in (SHORT / "fsx", SHORT / "efs"):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o1777)  # as ParallelCluster mounts them
        (bundle / "bootstrap" / "health" / "judge-node.sh").unlink()  # these nodes have no GPUs
        if not (SHORT / "current").is_symlink():
            (SHORT / "current").symlink_to(bundle.name)
        for step in _STEPS if self.has_accounting else _STEPS[:-1]:
            self.run_step(step)
        for step in ("76", "90"):
            self.run_step(step, root=ROOT_OF_NODES)

    def run_step(self, number: str, root: Path | str = "") -> None:
        """Run a step of the bundle as root. Raises RehearsalError if it fails."""
        (step,) = (SHORT / "bundle" / "bootstrap" / "steps").glob(f"{number}-*.sh")
        environment = {
            **self.slurm.client_env(),
            **self.variables,
            "TRAINING_ROOT": str(root),
            "NODE_TYPE": "HeadNode",
            "PARTITION": "",
        }
        environment["BUNDLE"] = str(SHORT / "bundle")
        done = subprocess.run(
            ["bash", str(step)], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RehearsalError(f"{step.name} failed:\n{done.stdout}{done.stderr}")

    def as_user(self, name: str, *argv: str) -> Said:
        """Run a command in a login shell of a user, as `sudo --user` and sshd do."""
        with self.started_as_user(name, *argv) as started:
            output, errors = started.communicate(timeout=120)
        return Said(argv, started.returncode, output, errors)

    def started_as_user(self, name: str, *argv: str) -> subprocess.Popen[str]:
        """Start such a command."""
        user = ["setpriv", "--reuid", name, "--regid", name, "--init-groups", "--reset-env"]
        kept = {"SLURM_CONF": str(self.slurm.layout.conf), **self.variables, "TRAINING_REHEARSAL": "1"}
        words = [f"{key}={value}" for key, value in kept.items()]
        shell = ["bash", "--login", "-c", 'cd && exec "$@"', "trainctl"]
        return subprocess.Popen(
            [*user, "env", *words, *shell, *argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def head_node(self, user: str) -> HeadNode:
        """Return a head node that runs trainctl's commands here, as a user."""
        return _Here(
            cluster_name=self.settings.cluster_name,
            instance_id="i-here",
            ssm=_NoEvents(),
            user=user,
            world=self,
        )


def _nodes(queue: Queue) -> NodeSet:
    shape = NodeShape(vcpus=queue.first.size.vcpus, memory_mib=1024)
    number = 1 if queue.shared else NODES
    types = (queue.first.name,)
    return NodeSet(queue=queue.name, name="n", instance_types=types, static=0, dynamic=number, shape=shape)


class _NoEvents:
    """Replacement of boto3's client, of which only `events` is used before a command is sent."""

    meta = events = property(lambda self: self)

    def register_first(self, *_: object, **__: object) -> None:
        """Store a handler of boto3's events."""


@dataclass(frozen=True, kw_only=True)
class _Here(HeadNode):
    user: str
    world: World

    def _run(self, argv: tuple[str, ...], shown: str, limit_s: int, reads_only: bool) -> str:  # noqa: ARG002
        etc = self.world.variables["TRAINING_ETC"]
        moved = [word.replace("/etc/training-cluster", etc) for word in argv]
        said = self.world.as_user(self.user, *moved)
        if said.returncode:
            raise CommandError(f"{shown.split(maxsplit=1)[0]}: {said.stderr.strip() or said.stdout.strip()}")
        return said.stdout
