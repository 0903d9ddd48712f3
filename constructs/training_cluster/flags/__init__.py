"""The context flags of the app, each a typed field.

A new flag goes into a group: compute, cluster, network, storage or account. settings.py combines the groups;
rules/context.py reads the CDK context into it.
"""
