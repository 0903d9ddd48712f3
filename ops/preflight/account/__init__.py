"""Checks of the account: credentials, conflicting names, budgets, and resources that the flags name.

Imported by: ops.commands, ops.preflight.checks.
"""
