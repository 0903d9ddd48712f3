"""The VPC, its subnets, endpoints and security group.

Imported by: ops, stacks, tools, training_cluster.image, training_cluster.storage.
"""
