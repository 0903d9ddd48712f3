"""Checks of a rendered cluster config against ParallelCluster's own schema and validators' rules."""
