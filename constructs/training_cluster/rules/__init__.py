"""Rules between flags: combinations that ParallelCluster or AWS would refuse."""
