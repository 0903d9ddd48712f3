"""`trainctl lint`: settings in job scripts that are obsolete, or harm. rules.yaml says which.

Imported by: ops.commands.
"""
