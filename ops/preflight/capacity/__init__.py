"""Checks of quotas, zones, instance types and reservations.

Imported by: ops.preflight.checks, ops.preflight.network.
"""
