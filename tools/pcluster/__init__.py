"""Exporters of data from the ParallelCluster library: schema and permissions."""
