"""The IAM statements of the provider's role, from permissions.tsv.

Imported by: tools, training_cluster.cluster.
"""
