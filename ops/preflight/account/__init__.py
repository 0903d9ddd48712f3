"""Checks of the account: credentials, names, leftovers of earlier deploys.

Imported by: ops.commands, ops.preflight.checks.
"""
