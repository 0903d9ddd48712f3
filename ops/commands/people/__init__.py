"""Subcommands about the people of a cluster."""
