"""Subcommands about what to buy."""
