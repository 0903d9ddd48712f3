"""`trainctl report`: training runs as text and as an HTML page.

Imported by: ops.commands, ops.jobs, ops.price, ops.verify.
"""
