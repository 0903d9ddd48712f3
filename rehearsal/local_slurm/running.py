"""A Slurm that another process started, changed while it runs, as a head node changes its own."""

import contextlib
import dataclasses
import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rehearsal import processes
from rehearsal.local_slurm.client import POLL_S, POWERED_DOWN, SlurmClient
from rehearsal.local_slurm.conf import render_slurm_conf
from rehearsal.local_slurm.custom_settings import Settings
from rehearsal.local_slurm.daemons import start_slurmctld
from rehearsal.local_slurm.errors import SlurmError
from rehearsal.local_slurm.layout import Layout
from rehearsal.local_slurm.partitions import Partition
from rehearsal.local_slurm.ports import find_ports
from training_cluster.cluster.config import JOB_SETTINGS

GRACE_S = 30.0


class RunningSlurm(SlurmClient):
    """The Slurm in `root`; `environment` is its client_env().

    Raises:
        FileNotFoundError: none was started there.
    """

    def __init__(self, *, root: Path, environment: Mapping[str, str]) -> None:
        super().__init__(layout=Layout.read(root), environment=environment)

    def update(self, partitions: Sequence[Partition], settings: Sequence[Settings] = (JOB_SETTINGS,)) -> None:
        """Use the partitions and settings of an updated cluster config; jobs on nodes that remain continue.

        As in ParallelCluster's update of a head node, slurmctld starts again with the new files, and then
        all daemons read them. Raises SlurmError if slurmctld refuses them; then the old ones are in use.
        """
        names = [name for partition in partitions for name in partition.node_names]
        layout = dataclasses.replace(self.layout, node_ports=self._ports(names))
        layout.check_socket_paths(names)
        conf, _ = render_slurm_conf(partitions=partitions, layout=layout, settings=settings)
        self._use(layout, conf)
        self.start_static_nodes(partitions)

    @contextlib.contextmanager
    def updated(
        self, partitions: Sequence[Partition], settings: Sequence[Settings] = (JOB_SETTINGS,)
    ) -> Iterator[None]:
        """Update like `update`; if the block fails, return to the previous partitions, with their nodes."""
        layout, conf = self.layout, self.layout.conf.read_text(encoding="utf-8")
        up = [name for name, state in self.node_states().items() if not state.endswith(POWERED_DOWN)]
        self.update(partitions, settings)
        try:
            yield
        except BaseException:
            self._use(layout, conf)
            self._power_up(up)
            raise

    def stop_fleet(self) -> None:
        """Close all partitions and power down all nodes; their jobs are queued again."""
        self._set_partitions("INACTIVE")
        self._power_down(list(self.layout.node_ports))

    def start_fleet(self, partitions: Sequence[Partition]) -> None:
        """Open all partitions, and start the static nodes."""
        self._set_partitions("UP")
        self.start_static_nodes(partitions)

    def _ports(self, names: Sequence[str]) -> dict[str, int]:
        known = self.layout.node_ports
        new = [name for name in names if name not in known]
        free = itertools.count(find_ports(len(new)) if new else 0)
        return {name: known[name] if name in known else next(free) for name in names}

    def _use(self, layout: Layout, conf: str) -> None:
        """Power down the nodes that `layout` lacks and restart slurmctld; undo that if it refuses."""
        self._power_down([name for name in self.layout.node_ports if name not in layout.node_ports])
        old, old_conf = self.layout, self.layout.conf.read_text(encoding="utf-8")
        self.layout = layout
        try:
            self._restart(conf)
        except SlurmError:
            self.layout = old
            self._restart(old_conf)
            raise
        self.layout.write()
        self._run(["scontrol", "reconfigure"])

    def _restart(self, conf: str) -> None:
        processes.end_program({"SLURM_CONF": str(self.layout.conf)}, "slurmctld", grace_s=GRACE_S)
        self.layout.conf.write_text(conf, encoding="utf-8")
        start_slurmctld(layout=self.layout, environment=self.client_env(), clean=False)

    def _set_partitions(self, state: str) -> None:
        for name in self._run(["sinfo", "--all", "--noheader", "--format=%R"]).split():
            self._run(["scontrol", "update", f"PartitionName={name}", f"State={state}"])

    def _power_down(self, names: Sequence[str]) -> None:
        """Power down the nodes that are up, and wait until they are down."""
        asked: set[str] = set()
        deadline = time.monotonic() + GRACE_S
        while up := [name for name in names if not self.node_states()[name].endswith(POWERED_DOWN)]:
            if new := sorted(set(up) - asked):
                change = ["State=POWER_DOWN_FORCE", "Reason=cluster update"]
                self._run(["scontrol", "update", f"NodeName={','.join(new)}", *change])
                asked.update(new)
            if time.monotonic() > deadline:
                raise SlurmError(f"These nodes did not power down within {GRACE_S:.0f} s: {', '.join(up)}.")
            time.sleep(POLL_S)
