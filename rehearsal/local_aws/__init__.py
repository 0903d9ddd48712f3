"""An AWS on one loopback port, in one process, without Docker.

ministack answers for CloudFormation, Lambda, Step Functions, S3, IAM, SSM and the rest; moto stands
behind it for EC2, FSx and EFS, whose instance-type data is real. What neither has stands here. What
it cannot show is written down in docs/rehearsal.md.

Imported by: bench, rehearsal.
"""
