"""FSx for Lustre: file systems and data repository associations.

Imported by: rehearsal.local_aws.ec2, rehearsal.local_aws.services.
"""
