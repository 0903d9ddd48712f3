#!/usr/bin/env bash
#
# Ships the logs of the bootstrap and of the health checks to CloudWatch, and rotates them; on head and login nodes also
# the log of logins and sudo, which ParallelCluster does not ship: auth.log of Ubuntu, secure of the others. They go to the cluster's log
# group, like ParallelCluster's own logs, so the reason of a drain is still there after the node is terminated.
#
# ParallelCluster's cookbook (resource cloudwatch) installs and starts the agent; `append-config` adds one file to its
# amazon-cloudwatch-agent.d, and keeps ParallelCluster's. The cookbook's own file has the log group, and whether logs are
# shipped at all. The streams are named like the cookbook's: HOST.INSTANCE.NAME.
#
# Called by: run-steps.sh, as root. Environment: NODE_TYPE, TRAINING_ROOT, BUNDLE. Safe to run again: the agent is restarted only
#   if the config has changed. It does nothing in a cluster without CloudWatch logs.
# Required: no
# Budget: 45 s
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/put.sh"

readonly AGENT="$TRAINING_ROOT/opt/aws/amazon-cloudwatch-agent" DNA="$TRAINING_ROOT/etc/chef/dna.json"
readonly CONFIG="$AGENT/etc/training-cluster.json" APPENDED="$AGENT/etc/amazon-cloudwatch-agent.d/file_training-cluster.json"
readonly LOGS=/var/log/training-cluster

put "$TRAINING_ROOT/etc/logrotate.d/training-cluster" <<END
# Training Cluster: steps/80-ship-logs.sh
$LOGS/*.log {
  weekly
  maxsize 10M
  rotate 4
  compress
  delaycompress
  missingok
  notifempty
}
END

# Prints the cluster's log group; nothing without one.
log_group() {
  python3 -I - "$DNA" <<'END'
import json, sys
cluster = json.load(open(sys.argv[1]))["cluster"]
print(cluster["log_group_name"] if cluster["cw_logging_enabled"] == "true" else "")
END
}

# collected FILE NAME: prints the agent's entry for one log; the agent waits for a file that is missing. Without timestamp_format, an event gets the time of reading.
collected() {
  printf '{"file_path": "%s", "log_group_name": "%s", "log_stream_name": "%s.{instance_id}.%s"}' \
    "$1" "$group" "$(hostname)" "training-cluster-$2"
}

group="$(log_group)"
[[ -n $group ]] || {
  printf 'this cluster has no CloudWatch logs: the logs stay in %s\n' "$LOGS" >&2
  exit 0
}
changed=no
logins=""
if [[ $NODE_TYPE != ComputeFleet ]]; then
  logins=",
  $(collected /var/log/auth.log logins),
  $(collected /var/log/secure logins)"
fi
put "$CONFIG" <<END
{"logs": {"logs_collected": {"files": {"collect_list": [
  $(collected "$LOGS/bootstrap.log" bootstrap),
  $(collected "$LOGS/health.log" health)$logins
]}}}}
END
if [[ $changed == yes || ! -e $APPENDED ]]; then
  timeout 40 "$AGENT/bin/amazon-cloudwatch-agent-ctl" -a append-config -m ec2 -c "file:$CONFIG" -s
fi
