"""The service-linked role that EC2 needs in an account before it launches spot instances for anybody.

AWS creates it for whoever may create such roles; ParallelCluster's head node, which launches the nodes, may
not (EC2 guide, "Service-linked role for Spot Instance requests"). Lustre, EFS, Aurora, Image Builder and load
balancers need such roles, too: theirs are created by the deploy, with the first resource.
"""

SPOT_ROLE = "AWSServiceRoleForEC2Spot"
CREATE_SPOT_ROLE = "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"
"""Command that an account needs once; it fails, and changes nothing, if the role exists."""
