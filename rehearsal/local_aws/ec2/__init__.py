"""EC2: reservations, images, placement groups, load balancers and scaling groups.

Imported by: rehearsal.local_aws.image_builder, rehearsal.local_aws.services.
"""
