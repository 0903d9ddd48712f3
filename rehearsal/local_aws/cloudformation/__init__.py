"""CloudFormation's engine and its resource types.

Imported by: rehearsal.
"""
