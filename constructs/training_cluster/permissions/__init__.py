"""The IAM statements of the provider's role, from permissions.tsv."""
