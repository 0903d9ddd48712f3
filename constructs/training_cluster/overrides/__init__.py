"""Overrides of the cluster config from a file of the user's.

Imported by: ops, rehearsal, training_cluster.advice, training_cluster.cluster, training_cluster.pcluster,
training_cluster.permissions, training_cluster.rules, stacks, tools.
"""
