"""Rules between flags: combinations that ParallelCluster or AWS would refuse.

Imported by: bench, ops, rehearsal, tools.
"""
