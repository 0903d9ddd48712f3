"""slurm.conf of a local cluster, rendered from partitions and a layout (pure)."""

import itertools
import re
from collections.abc import Iterator, Sequence

from rehearsal.local_slurm.custom_settings import CustomSettings, Settings
from rehearsal.local_slurm.layout import Layout
from rehearsal.local_slurm.partitions import NodeSet, NodeShape, Partition
from rehearsal.local_slurm.ports import LOOPBACK

# Percentage of a node's memory that ParallelCluster lets Slurm allocate (SchedulableMemory's default).
SCHEDULABLE_MEMORY_PERCENT = 95
_CREDENTIAL_S = 70  # in ParallelCluster's slurm.conf
# Port of slurmd in ParallelCluster's slurm.conf.
SLURMD_PORT = 6818


# slurmd always loads a cgroup plugin. The one for cgroup v2 requires root, systemd and dbus; the one for
# v1 requires nothing.
CGROUP_CONF = "CgroupPlugin=cgroup/v1\n"


def render_slurm_conf(
    *, partitions: Sequence[Partition], layout: Layout, settings: Sequence[Settings]
) -> tuple[str, list[str]]:
    """Render slurm.conf, and list which of the cluster's settings it leaves out.

    Each group of lines names the source of its values. `settings` are the lines of the cluster's config.
    """
    lines = [
        "# Written by rehearsal.local_slurm from a ParallelCluster cluster config; do not edit.",
        *_daemons(layout, settings),
        *_jobs(),
        *_scheduling(layout),
        *_accounting(layout),
        *_power(layout, partitions=partitions),
    ]
    custom = CustomSettings(has_accounting=layout.accounting_port is not None)
    lines += [
        *custom.lines(settings, ours="\n".join(lines)),
        *_nodes(partitions, layout=layout, custom=custom),
        *_partitions(partitions, layout=layout, custom=custom),
    ]
    return "\n".join(lines) + "\n", sorted(set(custom.left_out))


def _daemons(layout: Layout, settings: Sequence[Settings]) -> Iterator[str]:
    yield "\n# Names, users: this machine and whoever rehearses. Ports: found free at start."
    yield "ClusterName=rehearsal"
    yield f"SlurmctldHost={layout.host}({layout.controller})"
    yield f"SlurmctldPort={layout.controller_port}"
    yield f"SlurmUser={layout.user}"
    yield f"SlurmdUser={layout.user}"
    yield "# glibc finds no IPv4-only address on a machine whose only interface is lo, so allow both."
    yield "CommunicationParameters=EnableIPv6"
    yield "\n# Paths: all under the rehearsal's own folder, and munge's socket too."
    yield "AuthType=auth/munge"
    # Slurm 22.05 has no requeue_delay: a requeued job starts when its credential has expired.
    delay = re.search(r"requeue_delay=(\d+)", "".join(str(dict(each)) for each in settings))
    yield f"AuthInfo=socket={layout.munge_socket},cred_expire={delay[1] if delay else _CREDENTIAL_S}"
    yield f"StateSaveLocation={layout.state}"
    yield f"SlurmdSpoolDir={layout.spool}/%n"
    yield f"SlurmctldLogFile={layout.log}/slurmctld.log"
    yield f"SlurmdLogFile={layout.log}/slurmd-%n.log"
    yield f"SlurmctldPidFile={layout.run}/slurmctld.pid"
    yield f"SlurmdPidFile={layout.run}/%n.pid"
    yield "MailProg=/bin/true"
    yield "\n# As in ParallelCluster's slurm.conf. A lost message about a cancelled job is repeated after"
    yield "# KillWait and twice this time."
    yield "MessageTimeout=60"


def _jobs() -> Iterator[str]:
    yield "\n# A cluster's nodes on one machine: trust the CPUs and the memory written below, bind"
    yield "# nothing, use no cgroup (it would need root or a delegated one)."
    yield "SlurmdParameters=config_overrides"
    yield "ProctrackType=proctrack/linuxproc"
    yield "TaskPlugin=task/none"
    yield "JobAcctGatherType=jobacct_gather/none"
    yield "MpiDefault=none"
    yield "\n# Whole CPUs, as on ParallelCluster; a node that returns is used; powered-down nodes are shown."
    yield "SelectType=select/cons_tres"
    yield "SelectTypeParameters=CR_CPU"
    yield "ReturnToService=2"
    yield "PrivateData=cloud"
    yield "\n# A job that asks for more nodes than this machine starts is refused at once."
    yield "EnforcePartLimits=ALL"
    yield "\n# An ended job stays visible for an hour, since no accounting database stores it."
    yield "# ParallelCluster keeps it for 300 s, so no command may depend on it."
    yield "MinJobAge=3600"


def _scheduling(layout: Layout) -> Iterator[str]:
    if layout.prolog is None:
        return
    yield "\n# A folder without a script is not a prolog."
    yield f"Prolog={layout.prolog}/*"
    yield f"Epilog={layout.prolog.with_name('epilog.d')}/*"
    yield "BatchStartTimeout=180"


def _accounting(layout: Layout) -> Iterator[str]:
    if layout.accounting_port is None:
        return
    yield "\n# Accounting: as with -c accounting=new."
    yield "AccountingStorageType=accounting_storage/slurmdbd"
    yield f"AccountingStorageHost={LOOPBACK}"
    yield f"AccountingStoragePort={layout.accounting_port}"
    yield "# With munge it names munge's socket."
    yield f"AccountingStoragePass={layout.munge_socket}"
    yield "GresTypes=gpu"


def _power(layout: Layout, *, partitions: Sequence[Partition]) -> Iterator[str]:
    yield "\n# Job ids start at the controller's port: job.slurm derives MASTER_PORT from the job id, so"
    yield "# two clusters on one machine get different rendezvous ports."
    yield f"FirstJobId={layout.controller_port}"
    yield "\n# Nodes start on demand and power down when idle, as ParallelCluster's do; its own"
    yield "# SuspendTime is 600 s (ScaledownIdletime), ours is short enough to watch."
    yield f"ResumeProgram={layout.resume_program}"
    yield f"SuspendProgram={layout.suspend_program}"
    yield f"SuspendTime={layout.suspend_time_s}"
    yield f"ResumeTimeout={layout.resume_timeout_s}"
    yield f"SuspendTimeout={layout.suspend_timeout_s}"
    yield "ResumeRate=0"
    yield "SuspendRate=0"
    yield "SlurmctldParameters=idle_on_node_suspend,cloud_dns,power_save_interval=1"
    yield "\n# Ends when the job's nodes are up. Without it slurmctld checks only every 30 s,"
    yield "# which is short compared with an instance's boot, but half of a rehearsal."
    yield f"PrologSlurmctld={layout.await_program}"
    static = [
        _range(nodes, "st") for partition in partitions for nodes in partition.node_sets if nodes.static
    ]
    if static:
        yield "\n# Static nodes (MinCount) never power down."
        yield f"SuspendExcNodes={','.join(static)}"


def _nodes(partitions: Sequence[Partition], *, layout: Layout, custom: CustomSettings) -> Iterator[str]:
    yield "\n# Names: <queue>-<st|dy>-<compute resource>-<n>. CPUs and memory: the instance type's vCPUs"
    yield f"# and {SCHEDULABLE_MEMORY_PERCENT} % of its MiB. Each node is this machine, on a port of its own."
    for partition in partitions:
        for nodes in partition.node_sets:
            for kind in ("st", "dy"):
                ports = [layout.node_ports[name] for name in nodes.names(kind)]
                # Nodes that an update added may have ports far from the others'.
                runs = itertools.groupby(enumerate(ports, start=1), key=lambda pair: pair[1] - pair[0])
                for _, run in runs:
                    line = _node_line(nodes, kind=kind, numbers_and_ports=list(run), layout=layout)
                    yield custom.after(line, nodes.settings)


def _node_line(
    nodes: NodeSet, *, kind: str, numbers_and_ports: Sequence[tuple[int, int]], layout: Layout
) -> str:
    first, first_port = numbers_and_ports[0]
    count = len(numbers_and_ports)
    # ParallelCluster's own features and weights: a job takes running (static) nodes first.
    feature, weight = ("static", 1) if kind == "st" else ("dynamic", 1000)
    port = _span(first_port, count)
    place = f"NodeAddr={LOOPBACK} Port={port}" if layout.controller == LOOPBACK else f"Port={SLURMD_PORT}"
    return (
        f"NodeName={nodes.queue}-{kind}-{nodes.name}-{_span(first, count)} "
        f"{place} "
        f"{_shape(nodes.shape)} State=CLOUD "
        f"Feature={feature},{nodes.name},{','.join(nodes.instance_types)} Weight={weight}"
    )


def _partitions(partitions: Sequence[Partition], *, layout: Layout, custom: CustomSettings) -> Iterator[str]:
    yield "\n# One for each queue; the first is the default. MaxNodes: this machine's limit of slurmd."
    for i, partition in enumerate(partitions):
        ranges = [
            _range(nodes, kind)
            for nodes in partition.node_sets
            for kind, count in (("st", nodes.static), ("dy", nodes.dynamic))
            if count
        ]
        most = min(layout.max_node_processes, len(partition.node_names))
        yield custom.after(
            f"PartitionName={partition.name} Nodes={','.join(ranges)} Default={'NO' if i else 'YES'} "
            f"MaxNodes={most} State=UP",
            partition.settings,
        )


def _shape(shape: NodeShape) -> str:
    return f"CPUs={shape.vcpus} RealMemory={shape.memory_mib * SCHEDULABLE_MEMORY_PERCENT // 100}"


def _range(nodes: NodeSet, kind: str) -> str:
    count = nodes.static if kind == "st" else nodes.dynamic
    return f"{nodes.queue}-{kind}-{nodes.name}-{_span(1, count)}"


def _span(first: int, count: int) -> str:
    return str(first) if count == 1 else f"[{first}-{first + count - 1}]"
