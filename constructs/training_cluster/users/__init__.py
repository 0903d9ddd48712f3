"""The people of a cluster: the user's file of them, and what nodes make of it.

Imported by: ops, training_cluster.cluster, training_cluster.rules.
"""
