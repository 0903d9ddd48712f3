"""A cluster's head node: its signals, Systems Manager's agent and Run Command.

Imported by: rehearsal.local_aws.gateway, rehearsal.local_aws.server.
"""
