"""The cluster: its ParallelCluster config, the bundle of scripts, and the custom resource that creates it.

Imported by: bench, ops, rehearsal, stacks, tools, training_cluster.advice, training_cluster.image,
training_cluster.monitoring, training_cluster.pcluster, training_cluster.storage.
"""
