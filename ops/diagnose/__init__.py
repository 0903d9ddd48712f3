"""From what a failure left to ranked causes, each with its evidence line and its mend.

Imported by: ops.commands.
"""
