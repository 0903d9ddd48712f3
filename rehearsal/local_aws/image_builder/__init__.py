"""EC2 Image Builder: resource types, builds and API.

Imported by: rehearsal.local_aws.gateway, rehearsal.local_aws.services.
"""
