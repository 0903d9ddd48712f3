"""The cluster: its ParallelCluster config, the bundle of scripts, and the custom resource that creates it."""
