#!/usr/bin/env bash
#
# Starts a timer that publishes to CloudWatch, once a minute, what nobody else does: on the head node how many
# nodes are in which Slurm state, on compute nodes the use of their accelerators.
#
# Called by: run-steps.sh, as root. Environment: NODE_TYPE, BUNDLE, TRAINING_ETC, TRAINING_ROOT, and PATH, which
#   the timer gets, too. Safe to run again: a timer that is there takes the programs of the new bundle. A node
#   computes as well without metrics: what went wrong is said, and the node starts.
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
readonly UNITS="$TRAINING_ROOT/etc/systemd/system" NAME=training-cluster-metrics

# On exit, since a variable that is not set ends a script past every other trap.
say_so() {
  local -r status=$?
  if ((status)); then printf 'this node publishes no metrics: see the line above (%s)\n' "$status" >&2; fi
}
trap say_so EXIT

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
[[ -n $runs ]] || exit 0

put "$UNITS/$NAME.service" <<END
[Unit]
Description=Training Cluster: publish metrics of this node

[Service]
Type=oneshot
Environment="PATH=/opt/slurm/bin:/opt/aws/neuron/bin:$PATH"
ExecStart=/usr/bin/env python3 $BUNDLE/bootstrap/metrics/$runs $cluster
TimeoutStartSec=50
Nice=10
END
# At the same second on all nodes: a job that waits for its slowest node waits once a minute, not for each in turn.
put "$UNITS/$NAME.timer" <<END
[Unit]
Description=Training Cluster: publish metrics every minute

[Timer]
OnCalendar=minutely
AccuracySec=1s

[Install]
WantedBy=timers.target
END

timeout 10 systemctl daemon-reload
timeout 10 systemctl enable --now "$NAME.timer"
