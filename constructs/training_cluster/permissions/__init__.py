"""The IAM statements of the provider's role, from permissions.tsv.

Imported by: ops, rehearsal, tools, training_cluster.cluster.
"""
