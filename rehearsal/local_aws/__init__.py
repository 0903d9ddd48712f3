"""An AWS on one loopback port, in one process, without Docker.

moto answers for EC2, FSx, EFS and Service Quotas, with real data of instance types; ministack answers for
CloudFormation, Lambda, Step Functions, S3, IAM, SSM and the rest. This package adds what both lack.
docs/rehearsal.md lists what the local AWS cannot show.
"""
