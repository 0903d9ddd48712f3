"""Checks of a rendered cluster config against ParallelCluster's own schema and validators' rules.

Imported by: bench, ops, rehearsal, stacks, tools.
"""
