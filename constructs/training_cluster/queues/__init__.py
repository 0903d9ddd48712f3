"""Queues of a cluster (Slurm partitions): their compute resources, and the user's file of more queues.

Imported by: ops, rehearsal, stacks, tools, training_cluster.cluster,
training_cluster.flags, training_cluster.rules.
"""
