"""The subcommands of `trainctl`: options, help and output. Each imports its implementation when it runs.

Imported by: ops.cli.
"""
