"""The bucket, FSx for Lustre, EFS and the accounting database.

Imported by: ops, stacks, tools.
"""
