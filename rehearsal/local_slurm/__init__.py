"""A real Slurm on this machine with ParallelCluster's own partitions and node names.

With it the job scripts of a cluster run unchanged on a laptop.
"""

from rehearsal.local_slurm.cluster import LocalSlurm, stop_processes
from rehearsal.local_slurm.errors import SlurmError
from rehearsal.local_slurm.jobs import Job
from rehearsal.local_slurm.layout import Layout
from rehearsal.local_slurm.partitions import NodeSet, NodeShape, Partition, parse_partitions
from rehearsal.local_slurm.running import RunningSlurm

__all__ = [
    "Job",
    "Layout",
    "LocalSlurm",
    "NodeSet",
    "NodeShape",
    "Partition",
    "RunningSlurm",
    "SlurmError",
    "parse_partitions",
    "stop_processes",
]
