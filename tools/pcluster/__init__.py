"""Exporters of facts from the ParallelCluster library: schema, permissions, update policies."""
