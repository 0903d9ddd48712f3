"""Lambda functions of custom resources: the guard, the layer with the ParallelCluster library.

Imported by: ops, stacks, tools, training_cluster.cluster, training_cluster.image, training_cluster.network,
training_cluster.storage.
"""
