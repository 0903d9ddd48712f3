"""AccountingStack: the database of Slurm's accounting, with accounting=new; retained like all data."""

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from training_cluster.network.network import Network
from training_cluster.stack_names import ACCOUNTING_STACK
from training_cluster.storage.accounting import Accounting


class AccountingStack(Stack):
    """One database for all clusters: retained, and under termination protection."""

    def __init__(self, scope: Construct, id_: str, *, network: Network) -> None:
        super().__init__(
            scope,
            id_,
            stack_name=ACCOUNTING_STACK,
            description="Training Cluster: Slurm accounting, kept when it goes",
            termination_protection=True,
        )
        self.accounting = Accounting(self, "Accounting", network=network)
        CfnOutput(self, "Database", value=self.accounting.database.uri)
