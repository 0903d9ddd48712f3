"""The real ParallelCluster library, in its own environment, asked about a cluster config.

Imported by: ops.commands, ops.plan, ops.preflight.config.
"""
