"""Reads the ends of a cluster's logs in CloudWatch."""

import datetime
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ops.account.session import every

# Logs of ParallelCluster and of our bootstrap -> the number of nodes whose log is read, newest first.
_LOGS = {
    "bootstrap_error_msg": 3,
    "chef-client": 2,
    "cfn-init": 1,
    "cloud-init-output": 4,
    "clustermgtd": 1,
    "slurm_resume": 1,
    "slurmctld": 1,
    "slurmd": 2,
    "training-cluster-bootstrap": 4,
    "training-cluster-health": 4,
}
_LINES, _MAX_STREAMS = 1000, 500


def find_log_group(cluster_name: str, logs: Any) -> str | None:
    """Return the newest log group of a cluster, None without one: each failed deploy leaves one."""
    prefix = f"/aws/parallelcluster/{cluster_name}-"
    groups = every(logs, "describe_log_groups", "logGroups", logGroupNamePrefix=prefix)
    names = (str(group["logGroupName"]) for group in groups)
    return max((name for name in names if re.fullmatch(r"\d{12}", name.removeprefix(prefix))), default=None)


def wanted_streams(group: str, logs: Any) -> Iterator[str]:
    """Yield the names of the most useful streams, the last written first."""
    asked = {"logGroupName": group, "orderBy": "LastEventTime", "descending": True}
    taken: Counter[str] = Counter()
    for each in itertools.islice(every(logs, "describe_log_streams", "logStreams", **asked), _MAX_STREAMS):
        stream = each["logStreamName"]
        log = stream.rpartition(".")[2]
        if taken[log] < _LOGS.get(log, 0):
            taken[log] += 1
            yield stream


def tail(group: str, stream: str, logs: Any) -> str:
    """Return the end of one stream, one line per event."""
    answer = logs.get_log_events(logGroupName=group, logStreamName=stream, limit=_LINES, startFromHead=False)
    return "\n".join(f"{_time(event['timestamp'])} {event['message']}" for event in answer["events"])


def _time(ms: int) -> str:
    return f"{datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"
