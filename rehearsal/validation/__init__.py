"""`make validate`: our flags' rules, compared with the rules of the real ParallelCluster library."""
