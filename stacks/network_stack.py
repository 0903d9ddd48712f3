"""NetworkStack: the network of all clusters. Only inputs of zone and guard depend on a cluster's flags."""

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from training_cluster.cluster.zone_needs import zone_needs
from training_cluster.flags.settings import Settings
from training_cluster.functions.guard import Guard
from training_cluster.network.guarded import guarded_network
from training_cluster.network.network import Network
from training_cluster.network.security_group import NodeSecurityGroup
from training_cluster.network.vpc import ComputeVpc, InterfaceEndpoints
from training_cluster.network.zone import ComputeZone
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.stack_names import NETWORK_STACK


class NetworkStack(Stack):
    """A new VPC with everything that nodes need, or the ids of an existing one.

    Attributes:
        network: the network, for the other stacks, which depend on this one.
    """

    def __init__(self, scope: Construct, id_: str, *, settings: Settings) -> None:
        super().__init__(
            scope,
            id_,
            stack_name=NETWORK_STACK,
            description="Training Cluster: network, shared by all clusters",
        )
        guard = Guard(self, "Guard", values=guarded_network(settings), settings=settings)
        zone = None if settings.vpc_id else self._zone(settings)
        own = ComputeVpc(self, "Network", zone_name=zone.name) if zone else None
        vpc_id = own.vpc.vpc_id if own else settings.vpc_id
        # Without public access the user's network may have no public subnet.
        public_id = (
            own.public_subnet.subnet_id if own else settings.public_subnet_id or settings.private_subnet_id
        )
        private_id = own.private_subnet.subnet_id if own else settings.private_subnet_id
        assert vpc_id and public_id and private_id, "the rules refuse it"
        nodes_id = settings.security_group_id
        if nodes_id is None:
            nodes = NodeSecurityGroup(self, "NodeSecurityGroup", vpc_id=vpc_id, ssh_from=settings.ssh_from)
            nodes_id = nodes.group.security_group_id
            if own and (services := settings.interface_endpoints):
                vpc, subnet = own.vpc, own.private_subnet
                InterfaceEndpoints(self, "Endpoints", services=services, vpc=vpc, subnet=subnet)
        self.network = Network(
            self,
            "Exported",
            vpc_id=self._export("VpcId", vpc_id),
            public_subnet_id=self._export("PublicSubnetId", public_id),
            private_subnet_id=self._export("PrivateSubnetId", private_id),
            node_security_group_id=self._export("NodeSecurityGroupId", nodes_id),
            guard_token=self._export("GuardToken", guard.service_token),
            # None for the user's own network, where accounting=new is refused.
            zone_names=self._export_zones(zone) if zone else (),
        )
        guard.protect(*(each for each in self.node.children if each is not guard))

    def _zone(self, settings: Settings) -> ComputeZone:
        zone = ComputeZone(self, "Zone", needs=zone_needs(settings, config_before_deploy(settings)))
        CfnOutput(self, "ZoneId", value=zone.id)
        return zone

    def _export_zones(self, zone: ComputeZone) -> tuple[str, str]:
        # assets/compute_zone/handler.py reads OtherZoneName again at an update, to keep it.
        return self._export("ZoneName", zone.name), self._export("OtherZoneName", zone.other_name)

    def _export(self, name: str, value: str) -> str:
        """Export a value, new or given, under a name that no flag changes; return its import.

        CloudFormation refuses to change or remove an export in use, so a cluster's network never changes.
        """
        return CfnOutput(self, name, value=value, export_name=f"{self.stack_name}:{name}").import_value
