"""Checks of an existing network.

Imported by: ops.preflight.checks, ops.preflight.storage.
"""
