"""`make validate`: what our flags allow, against what the real ParallelCluster library allows."""
