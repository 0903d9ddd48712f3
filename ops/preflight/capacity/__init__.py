"""Checks of quotas, zones, instance types and reservations."""
