"""Recordings of cluster creation, update and deletion: calls of AWS and resource types, made locally.

Imported by: bench, tools.
"""
