#!/usr/bin/env bash
#
# Starts the timers of a node, of which one publishes metrics to CloudWatch once a minute, and one, on head and login
# nodes, takes the bundle that the cluster config names where they missed an update.
#
# Metrics are, on the head node, how many nodes are in which Slurm state, and on compute nodes the use of their
# accelerators. The bundle: ParallelCluster runs OnNodeUpdated on the head node alone, and not when an update is rolled
# back. Compute nodes have prolog.sh for that. What the timer runs is in bootstrap.sh (BOOTSTRAP_MOMENT=follow).
#
# Called by: run-steps.sh, as root. Environment: NODE_TYPE, BUNDLE, TRAINING_ETC, TRAINING_ROOT, and PATH, which
#   the timers get, too. Safe to run again: a timer that is there takes the programs of the new bundle. A node
#   computes as well without them: what went wrong is said, and the node starts.
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

# On exit, since a variable that is not set ends a script past every other trap.
say_so() {
  local -r status=$?
  if ((status)); then printf 'this node has not all of its timers: see the line above (%s)\n' "$status" >&2; fi
}
trap say_so EXIT

# timer NAME WHEN PURPOSE <<<SERVICE
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

# Prints which of the bundle's programs runs here, with its first argument; nothing where none does.
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
  # At the same second on all nodes: a job that waits for its slowest node waits once a minute, not for each in turn.
  timer training-cluster-metrics minutely "publish metrics of this node" <<END
Environment="PATH=/opt/slurm/bin:/opt/aws/neuron/bin:$PATH"
ExecStart=/usr/bin/env python3 $BUNDLE/bootstrap/metrics/$runs $cluster
TimeoutStartSec=50
Nice=10
END
fi
if [[ $NODE_TYPE != ComputeFleet ]]; then
  arguments="$(<"$TRAINING_ETC/bootstrap-arguments")"
  # As long as bootstrap.sh waits for it to end (LOCK_S).
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
