"""The subcommands of `trainctl`: options, help, what they print. What they do is imported when they run.

Imported by: ops.cli.
"""
