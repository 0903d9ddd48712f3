"""Security group of all nodes: traffic among themselves, and out."""

from aws_cdk import CfnTag
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from training_cluster.acknowledgements import acknowledge


class NodeSecurityGroup(Construct):
    """Group that lets nodes reach each other in both directions, which EFA needs, and the world.

    Made of L1s: CDK's own SecurityGroup cannot have an egress rule to itself in addition to one to the world.

    Args:
        ssh_from: CIDR from which port 22 is reached.

    Attributes:
        group: the group, for rules of other groups; it takes no more rules itself.
    """

    def __init__(self, scope: Construct, id_: str, *, vpc_id: str, ssh_from: str | None) -> None:
        super().__init__(scope, id_)
        group = ec2.CfnSecurityGroup(
            self,
            "Group",
            vpc_id=vpc_id,
            group_description="Nodes of training clusters: each other (EFA needs both directions), and out",
            tags=[CfnTag(key="Name", value="training-cluster-nodes")],
        )
        group_id = group.attr_group_id
        description = "Nodes among themselves, EFA included"
        ec2.CfnSecurityGroupIngress(
            self,
            "NodesIn",
            group_id=group_id,
            ip_protocol="-1",
            source_security_group_id=group_id,
            description=description,
        )
        nodes_out = ec2.CfnSecurityGroupEgress(
            self,
            "NodesOut",
            group_id=group_id,
            ip_protocol="-1",
            destination_security_group_id=group_id,
            description=description,
        )
        world_out = ec2.CfnSecurityGroupEgress(
            self,
            "WorldOut",
            group_id=group_id,
            ip_protocol="-1",
            cidr_ip="0.0.0.0/0",
            description="Packages and AWS APIs",
        )
        # Creating a SecurityGroupEgress removes the group's default rule, or any other that allows
        # everything, so the rule to the world is created last.
        world_out.add_resource_dependency(nodes_out)
        if ssh_from:
            ssh = ec2.CfnSecurityGroupIngress(
                self,
                "SshIn",
                group_id=group_id,
                ip_protocol="tcp",
                from_port=22,
                to_port=22,
                cidr_ip=ssh_from,
                description="SSH, as ssh_from says",
            )
            for rule in ("AwsSolutions-EC23", "W2508"):
                acknowledge(ssh, rule, "the whole world only with ssh_from_anywhere=yes (rules/network.py)")
        self.group = ec2.SecurityGroup.from_security_group_id(self, "Nodes", group_id, mutable=False)
