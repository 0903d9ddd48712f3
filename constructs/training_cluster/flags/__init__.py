"""The context flags of the app, each a typed field.

Imported by: ops, rehearsal, stacks, tools, training_cluster.
"""
