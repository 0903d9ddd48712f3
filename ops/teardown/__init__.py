"""`make teardown-plan`: what goes, what stays, what it costs, and how to delete the rest; deletes nothing.

Imported by: ops.commands.
"""
