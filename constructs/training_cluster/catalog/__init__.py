"""The declarations of cluster_configs/ and assets/: families, prices, quotas, versions, steps, workloads.

Imported by: bench, ops, rehearsal, stacks, tools, training_cluster.
"""
