"""People of a cluster: `trainctl users` edits the file of users.

Imported by: ops.commands.
"""
