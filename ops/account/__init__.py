"""The AWS account as trainctl reads it: sessions, stacks, clusters, and commands on a head node."""
