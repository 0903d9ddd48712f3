"""Subcommands of `trainctl` that need no account."""
