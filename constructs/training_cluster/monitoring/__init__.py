"""The dashboard, alarms and budget of a cluster.

Imported by: stacks.
"""
