"""The real ParallelCluster library, in its own environment, asked about a cluster config."""
