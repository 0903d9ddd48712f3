"""The declarations of cluster_configs/ and assets/: families, prices, quotas, versions, steps, workloads."""
