"""`trainctl plan`: shows the changes of a deploy, by flag.

Imported by: ops.commands, ops.importing, ops.teardown, ops.verify.
"""
