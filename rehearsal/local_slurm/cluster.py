"""LocalSlurm: a real Slurm in one folder, which runs jobs and leaves no process behind."""

import dataclasses
import os
import pwd
import shutil
import socket
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from rehearsal import processes
from rehearsal.local_aws.address import tools_path
from rehearsal.local_slurm.accounting import start_accounting
from rehearsal.local_slurm.client import SlurmClient
from rehearsal.local_slurm.conf import CGROUP_CONF, render_slurm_conf
from rehearsal.local_slurm.custom_settings import Settings
from rehearsal.local_slurm.daemons import ANCHOR, Child, start_anchor, start_munged, start_slurmctld
from rehearsal.local_slurm.errors import SlurmError
from rehearsal.local_slurm.layout import Layout
from rehearsal.local_slurm.node_program import can_separate, node_program
from rehearsal.local_slurm.partitions import Partition
from rehearsal.local_slurm.ports import LOOPBACK, find_ports
from rehearsal.local_slurm.power import power_program
from training_cluster.cluster.config import JOB_SETTINGS
from training_cluster.paths import ROOT

PROGRAMS = ("munged", "slurmctld", "slurmd", "scontrol", "sbatch", "srun", "sinfo", "scancel")
# Debian installs the daemons outside a normal user's PATH.
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Variables of a surrounding Slurm would configure this one, those of an AWS account would reach its jobs,
# TMPDIR names a folder that another host does not have, and with make's folder of compiled files each rank
# would compile torch again: jobs write none, and pip's are in the environment.
FOREIGN = ("SLURM", "SBATCH", "SQUEUE", "SINFO", "SRUN", "MUNGE", "AWS_", "TMPDIR", "PYTHONPYCACHEPREFIX")
GRACE_S = 8.0
# The largest process id of Linux is 4194304.
LONGEST_ALIAS = Path("/proc/4194304/cwd")


def stop_processes(identity: Mapping[str, str]) -> None:
    """End the processes of one Slurm: nodes and jobs, then slurmctld, then the rest.

    `identity` holds the marker and SLURM_CONF. Raises RehearsalError if a process is left.
    """
    # slurmctld ends its own slurmscriptd; without it, it hangs.
    last = ("munged", "mariadbd", "slurmdbd", ANCHOR)
    for kept in (("slurmctld", "slurmscriptd", *last), ("slurmscriptd", *last), ()):
        processes.end(identity, except_names=kept, grace_s=GRACE_S)
    processes.check_none(identity)


class LocalSlurm(SlurmClient):
    """A Slurm with ParallelCluster's partitions and node names, on this machine, for one rehearsal.

    It is a context manager; `start` and `stop` do the same explicitly. `marker` is an environment variable
    of all its processes. All its files are in `root`. `prolog` (absolute) and `controller` are as in Layout.
    `second_user` may submit jobs in addition to root; `user_env` is the environment for that. Where nodes are
    separate, each has its own copy of the existing `private` folders; `service` is a program that each node
    runs as well, and `begin` a script that each node runs before slurmd, with its name. `accounting`
    corresponds to `-c accounting=new`: a database and slurmdbd. `for_all` lets every user submit jobs; `root`
    is then a short path that all users can reach. `settings` are the lines for slurm.conf of the cluster's
    config.
    """

    def __init__(
        self,
        *,
        root: Path,
        partitions: Sequence[Partition],
        marker: tuple[str, str],
        suspend_time_s: int = 20,
        max_node_processes: int = 8,
        prolog: Path | None = None,
        second_user: str | None = None,
        private: Collection[Path] = (),
        service: Sequence[str] = (),
        accounting: bool = False,
        for_all: bool = False,
        settings: Sequence[Settings] = (JOB_SETTINGS,),
        controller: str = LOOPBACK,
        begin: Path | None = None,
    ) -> None:
        self._partitions, self._settings, self._begin = tuple(partitions), settings, begin
        self.left_out: Sequence[str] = ()
        """Settings of the cluster that this Slurm does not have, with reasons; known after `start`."""
        self._children: list[Child] = []
        self._second_user, self._for_all = second_user, for_all
        self._private, self._service = private, service
        first_port = find_ports(len(self.node_names) + 1 + accounting)
        layout = Layout(
            root=root,
            user=pwd.getpwuid(os.getuid()).pw_name,
            host=socket.gethostname().partition(".")[0],
            controller_port=first_port,
            node_ports={name: first_port + i for i, name in enumerate(self.node_names, start=1)},
            max_node_processes=max_node_processes,
            suspend_time_s=suspend_time_s,
            prolog=prolog,
            accounting_port=first_port + len(self.node_names) + 1 if accounting else None,
            controller=controller,
        )
        dataclasses.replace(layout, alias=LONGEST_ALIAS).check_socket_paths(self.node_names)
        self._identity = {marker[0]: marker[1], "SLURM_CONF": str(layout.conf)}
        kept = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
        self.has_separate_nodes = False
        """True once nodes start with /tmp, /var/tmp and /dev/shm of their own."""
        self._path = f"{tools_path()}:{SYSTEM_PATH}"
        super().__init__(layout=layout, environment=kept | self._identity | {"PATH": self._path})

    @property
    def node_names(self) -> tuple[str, ...]:
        """Names of all nodes in the cluster config."""
        return tuple(name for partition in self._partitions for name in partition.node_names)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start munged, slurmctld and the static nodes. Raises SlurmError, after which nothing runs."""
        missing = [name for name in PROGRAMS if not shutil.which(name, path=self._path)]
        if missing:
            raise SlurmError(
                f"{', '.join(missing)} not found on {self._path}. Install Slurm and munge: "
                "`sudo apt-get install slurmctld slurmd slurm-client munge`."
            )
        self.stop()  # end processes of a killed rehearsal in this folder
        try:
            self._make_folders()
            self.has_separate_nodes = can_separate(self.client_env())
            if self._for_all:
                self.layout.check_socket_paths(self.node_names)
            else:
                self._shorten_paths()
            self._write_files()
            self._children.append(start_munged(layout=self.layout, environment=self.client_env()))
            if self.layout.accounting_port is not None:
                self._children += start_accounting(layout=self.layout, environment=self.client_env())
            self._children.append(start_slurmctld(layout=self.layout, environment=self.client_env()))
            self.start_static_nodes(self._partitions)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop jobs and nodes, then the controller, then munged; safe to call twice, or after a crash.

        It sends SIGTERM, and SIGKILL after a grace period. Raises SlurmError if a process is left.
        """
        if self.layout.run.is_dir():
            self.layout.stopping.touch()
        stop_processes(self._identity)
        while self._children:
            self._children.pop().wait()

    def _shorten_paths(self) -> None:
        anchor, alias = start_anchor(
            root=self.layout.root, environment=self.client_env(), second_user=self._second_user
        )
        self._children.append(anchor)
        self.layout = dataclasses.replace(self.layout, alias=alias)

    def _make_folders(self) -> None:
        layout = self.layout
        munge, spool = layout.root / "munge", layout.root / "spool"
        for folder in (layout.state, layout.log, layout.run, layout.jobs, munge, spool):
            folder.mkdir(parents=True, exist_ok=True)
        layout.stopping.unlink(missing_ok=True)

    def _write_files(self) -> None:
        layout = self.layout
        conf, self.left_out = render_slurm_conf(
            partitions=self._partitions, layout=layout, settings=self._settings
        )
        layout.conf.write_text(conf, encoding="utf-8")
        layout.cgroup_conf.write_text(CGROUP_CONF, encoding="utf-8")
        layout.write()
        environment = self._identity | {"PATH": SYSTEM_PATH}
        shared = {ROOT, Path(sys.prefix)}
        starts = node_program(
            root=layout.root,
            shared=shared,
            separate=self.has_separate_nodes,
            private=self._private,
            service=self._service,
            has_network=layout.controller != LOOPBACK,
            begin=self._begin,
        )
        layout.node_program.write_text(starts, encoding="utf-8")
        layout.node_program.chmod(0o755)
        for program in (layout.resume_program, layout.suspend_program, layout.await_program):
            text = power_program(
                verb=program.name, environment=environment, root=layout.root, most=layout.max_node_processes
            )
            program.write_text(text, encoding="utf-8")
            program.chmod(0o755)
