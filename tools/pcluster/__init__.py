"""Exporters of data from the ParallelCluster library: schema, permissions, update policies.

Imported by: nobody; run by name.
"""
