#!/usr/bin/env bash
#
# Lets the head node tell Slurm where in EC2's network the nodes are (services/topology.py), by the flag topology; with off,
# removes it. 85-start-timers.sh lets systemd read the unit, and starts the timer. Without the flag a cluster whose first
# deploy has this step gets it, and an older cluster does not.
#
# Called by: run-steps.sh, as root. Environment: BUNDLE, TOPOLOGY, TRAINING_BUNDLES, TRAINING_STATE, TRAINING_ROOT, SLURM_CONF.
#   Safe to run again.
# Nodes: HeadNode
# Required: no
# Budget: 5 s
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/put.sh"

readonly CONF="${SLURM_CONF:-$TRAINING_ROOT/opt/slurm/etc/slurm.conf}" OWN="$TRAINING_STATE/topology"
readonly UNIT="$TRAINING_ROOT/etc/systemd/system/slurmctld.service.d/training-cluster-topology.conf"
readonly PLUGIN=TopologyPlugin=topology/tree
export PATH="/opt/slurm/bin:$PATH"

# Prints what applies where the flag is not given. bootstrap.sh makes the link at the end of a node's first run.
default() {
  if [[ -s $OWN ]]; then
    cat "$OWN"
  elif [[ -e ${TRAINING_BUNDLES:-$(dirname "$BUNDLE")}/current ]]; then
    printf 'off\n'
  else
    printf 'auto\n'
  fi
}

# slurmctld reads the file only with the plugin.
remove() {
  if grep -qx "$PLUGIN" "$CONF"; then
    put "$CONF" < <(grep -vx "$PLUGIN" "$CONF")
    if timeout 4 scontrol reconfigure; then
      rm -f "${CONF%/*}/topology.conf"
    else
      printf 'scontrol reconfigure failed: slurmctld keeps the tree of the network until it starts again\n' >&2
    fi
  fi
  rm -f "$UNIT" "$OWN.json"
}

wanted="${TOPOLOGY:-$(default)}"
put "$OWN" <<<"$wanted"
if [[ $wanted == off ]]; then
  remove
else
  put "$UNIT" <<END
[Service]
ExecStartPre=-/usr/bin/env PATH=$PATH python3 $BUNDLE/bootstrap/services/topology.py
END
fi
