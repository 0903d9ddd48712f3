"""Lambda functions of custom resources: the guard, the layer with the ParallelCluster library."""
