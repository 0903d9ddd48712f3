"""`trainctl plan`: what a deploy would change, in the user's terms.

Imported by: ops.commands.
"""
