"""An emulated head node of a cluster: it publishes the fleet's status and signals that it is up.

On AWS the head node runs ParallelCluster's chef recipes for some 10 minutes, writes the fleet's
status to the cluster's DynamoDB table and signals the stack's WaitCondition. After that it stops and starts
the fleet when that table requests it. A file (LocalAwsAddress.head_node_behaviour) makes it fail or stay
silent.
"""

import datetime
import json
import threading
import time

import urllib3

from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.local_aws.cloudformation import handlers
from rehearsal.local_aws.emulators.ministack_client import client
from rehearsal.local_aws.emulators.moto_types import Created, Properties, ec2
from rehearsal.local_aws.head_node import events
from rehearsal.local_aws.head_node.run_commands import running_nodes

_LOGICAL_ID = "HeadNodeWaitCondition"
_TYPE = "AWS::CloudFormation::WaitCondition"
_POLL_S = 0.5
"""Interval at which the head node looks for requests; each look costs a processor milliseconds."""
_SILENCE_S = 1
"""Seconds that CloudFormation waits for a silent head node; HeadNodeBootstrapTimeout on AWS."""


def install(address: LocalAwsAddress) -> None:
    """Boot an emulated head node whenever its WaitCondition starts to wait."""
    wait: handlers.Create = handlers.original(_TYPE)["create"]

    def create(logical_id: str, properties: Properties, stack_name: str) -> Created:
        if logical_id.startswith(_LOGICAL_ID):
            behaviour = _behaviour(address)
            if behaviour == "never signals":
                properties = {**properties, "Timeout": _SILENCE_S}
            else:
                boot = threading.Thread(
                    target=_boot, args=(address, properties, stack_name, behaviour), daemon=True
                )
                boot.start()
        return wait(logical_id, properties, stack_name)

    handlers.wrap(_TYPE, create=create)


def _behaviour(address: LocalAwsAddress) -> str:
    file = address.head_node_behaviour
    return file.read_text().strip() if file.exists() else "signals"


def _boot(address: LocalAwsAddress, condition: Properties, cluster_name: str, behaviour: str) -> None:
    connection = urllib3.PoolManager(ca_certs=str(address.certificate))

    def send(status: str, reason: str) -> None:
        signal = {"Status": status, "Reason": reason, "UniqueId": "head-node", "Data": reason}
        connection.request("PUT", condition["Handle"], body=json.dumps(signal))

    fleet = Fleet(address, cluster_name)
    try:
        if behaviour == "fails":
            _write_log(cluster_name)
            send("FAILURE", "Failed to execute OnNodeConfigured script: return code 1 (as a fault)")
            return
        is_new = fleet.begin()
        event: events.Event = "create" if is_new else "update"
        failure = events.report(address, cluster_name, event, timeout_s=float(condition["Timeout"]))
    except Exception as error:
        send("FAILURE", f"the stand-in for the head node failed: {error}")
        raise
    if failure:
        send("FAILURE", failure)
    else:
        send("SUCCESS", "emulated")
    if is_new:
        fleet.manage()


def _write_log(cluster_name: str) -> None:
    """Write one line to a log of the head node, as its CloudWatch agent does."""
    logs = client("logs")
    [node] = running_nodes("HeadNode", cluster_name)
    # An earlier cluster of this name leaves its group, unless it was created in the same minute.
    prefix = f"/aws/parallelcluster/{cluster_name}-"
    groups = logs.describe_log_groups(logGroupNamePrefix=prefix)["logGroups"]
    group = max(groups, key=lambda group: group["creationTime"])
    stream = f"{node.private_dns_name.partition('.')[0]}.{node.id}.cfn-init"
    names = {"logGroupName": group["logGroupName"], "logStreamName": stream}
    logs.create_log_stream(**names)
    logs.put_log_events(**names, logEvents=[{"timestamp": int(time.time() * 1000), "message": "booting"}])


class Fleet:
    """The compute fleet's status in the cluster's table, which clustermgtd maintains on a real head node."""

    def __init__(self, address: LocalAwsAddress, cluster_name: str) -> None:
        self._table, self._address = client("dynamodb"), address
        self._cluster, self._name = cluster_name, f"parallelcluster-{cluster_name}"

    def begin(self) -> bool:
        """Publish that the fleet runs, unless it already has a status; an update leaves it unchanged."""
        if self._status():
            return False
        self.publish("RUNNING")
        return True

    def publish(self, status: str) -> None:
        """Write the status to the table."""
        now = datetime.datetime.now(datetime.UTC).isoformat()
        data = {"status": {"S": status}, "lastStatusUpdatedTime": {"S": now}}
        self._table.put_item(TableName=self._name, Item={"Id": {"S": "COMPUTE_FLEET"}, "Data": {"M": data}})

    def manage(self) -> None:
        """Handle requests to the fleet until the cluster is deleted; a deleted item may come back."""
        while (status := self._status()) is not None:
            if _behaviour(self._address) == "ignores requests":
                pass
            elif status == "STOP_REQUESTED":
                self.publish("STOPPING")
                if nodes := running_nodes("Compute", self._cluster):
                    ec2().terminate_instances([node.id for node in nodes])
                events.report(self._address, self._cluster, "stop-fleet")
                self.publish("STOPPED")
            elif status == "START_REQUESTED":
                self.publish("STARTING")
                events.report(self._address, self._cluster, "start-fleet")
                self.publish("RUNNING")
            time.sleep(_POLL_S)
        events.report(self._address, self._cluster, "delete")

    def _status(self) -> str | None:
        """Read the status: empty if the table has none, None if the table is deleted."""
        try:
            item = self._table.get_item(TableName=self._name, Key={"Id": {"S": "COMPUTE_FLEET"}})
        except self._table.exceptions.ResourceNotFoundException:
            return None
        return str(item["Item"]["Data"]["M"]["status"]["S"]) if "Item" in item else ""
