"""Exporters of data from the ParallelCluster library: schema and permissions.

Imported by: nobody; run by name.
"""
