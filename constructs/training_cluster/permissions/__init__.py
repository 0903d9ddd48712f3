"""The IAM statements of the provider's role, from permissions.tsv.

Imported by: rehearsal, tools, training_cluster.cluster.
"""
