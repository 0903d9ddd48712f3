"""Asks the real ParallelCluster library, which has an environment of its own, about a cluster config."""
