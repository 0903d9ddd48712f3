"""Subcommands of `trainctl` that need no account.

Imported by: ops.cli.
"""
