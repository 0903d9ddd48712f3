"""Subcommands about the people of a cluster.

Imported by: ops.cli.
"""
