#!/usr/bin/env bash
#
# Starts the node's timers, which publish metrics and follow missed updates. One publishes metrics to CloudWatch once a
# minute; one, on head and login nodes, installs the bundle that the cluster config names if they missed an update.
#
# The metrics are the numbers of nodes by Slurm state on the head node, and the use of accelerators on compute nodes.
# The second timer is needed because ParallelCluster runs OnNodeUpdated only on the head node, and not at a rollback.
# It runs bootstrap.sh with BOOTSTRAP_MOMENT=follow; compute nodes have prolog.sh instead.
#
# Called by: run-steps.sh, as root. Environment: NODE_TYPE, BUNDLE, TRAINING_ETC, TRAINING_ROOT, and PATH, which
#   the timers get too. Safe to run again: an existing timer gets the programs of the new bundle. A node works
#   without the timers too: their failure is reported, and the node starts.
# Moment: start
# Recipes: all
# Nodes: all
# Where: node
# Required: no
# Budget: 30 s
set -euo pipefail
shopt -s inherit_errexit
# shellcheck source=assets/bootstrap/lib/put.sh
source "$BUNDLE/bootstrap/lib/put.sh"

readonly CFNCONFIG="$TRAINING_ROOT/etc/parallelcluster/cfnconfig"
readonly UNITS="$TRAINING_ROOT/etc/systemd/system"
timers=()

# On exit, since an unset variable ends a script without any other trap.
report_failure() {
  local -r status=$?
  if ((status)); then printf 'this node has not all of its timers: see the line above (%s)\n' "$status" >&2; fi
}
trap report_failure EXIT

# timer NAME WHEN PURPOSE <<<SERVICE: writes the units of a timer.
timer() {
  put "$UNITS/$1.service" <<END
[Unit]
Description=Training Cluster: $3

[Service]
Type=oneshot
$(cat)
END
  put "$UNITS/$1.timer" <<END
[Unit]
Description=Training Cluster: $3

[Timer]
OnCalendar=$2
AccuracySec=1s

[Install]
WantedBy=timers.target
END
  timers+=("$1.timer")
}

# Prints the bundle's metrics program for this node, with its first argument; nothing if the node has none.
program() {
  case $NODE_TYPE in
    HeadNode) printf 'node_states.py\n' ;;
    ComputeFleet)
      # shellcheck source=/dev/null
      source "$TRAINING_ETC/partitions/${cfn_scheduler_queue_name:?is not in cfnconfig}.env"
      if [[ $ACCELERATOR_KIND != none ]]; then printf 'accelerators.py %s\n' "$ACCELERATOR_KIND"; fi
      ;;
  esac
}

# shellcheck source=/dev/null
source "$CFNCONFIG"
cluster="--cluster ${stack_name:?is not in cfnconfig} --region ${cfn_region:?is not in cfnconfig}"
runs="$(program)"
if [[ -n $runs ]]; then
  # At the same second on all nodes: a job waits for its slowest node then only once a minute, not for each in turn.
  timer training-cluster-metrics minutely "publish metrics of this node" <<END
Environment="PATH=/opt/slurm/bin:/opt/aws/neuron/bin:$PATH"
ExecStart=/usr/bin/env python3 $BUNDLE/bootstrap/metrics/$runs $cluster
TimeoutStartSec=50
Nice=10
END
fi
if [[ $NODE_TYPE != ComputeFleet ]]; then
  arguments="$(<"$TRAINING_ETC/bootstrap-arguments")"
  # The same limit as LOCK_S of bootstrap.sh, which waits that long for its end.
  timer training-cluster-follow '*:0/15' "take the bundle that the cluster config names" <<END
Environment="PATH=$PATH" BOOTSTRAP_MOMENT=follow
ExecStart=/usr/bin/env bash $BUNDLE/bootstrap/bootstrap.sh $arguments
TimeoutStartSec=900
END
fi
if ((${#timers[@]})); then
  timeout 10 systemctl daemon-reload
  timeout 10 systemctl enable --now "${timers[@]}"
fi
