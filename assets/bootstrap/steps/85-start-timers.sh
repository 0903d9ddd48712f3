#!/usr/bin/env bash
#
# Starts the node's timers, which publish metrics, install missed updates and check idle nodes, and its root service.
#
# training-cluster-metrics publishes to CloudWatch every two minutes: the numbers of nodes by Slurm state from the head
# node, and the use of accelerators from compute nodes. With metrics=prometheus or amp the same
# programs run twice a minute and also write text files for node_exporter; without it, the step removes what an earlier
# bundle started for them (steps 86 to 88).
# training-cluster-follow, on head and login nodes, installs the bundle that the cluster config names, since
# ParallelCluster runs OnNodeUpdated only on the head node, and not at a rollback. It runs bootstrap.sh with
# BOOTSTRAP_MOMENT=follow; compute nodes have prolog.sh instead.
# training-cluster-blocks, on the head node, reserves the nodes of Capacity Blocks in Slurm before EC2 takes them.
# training-cluster-qos, on the head node, gives waiting jobs the QOS that their account has now.
# training-cluster-topology, on the head node, tells Slurm where new nodes are in EC2's network (79-apply-topology.sh).
# training-cluster-health, on compute nodes, checks an idle node once an hour.
# training-cluster-node, the root service of compute nodes (services/node_service.py), hears that EC2 takes the node, and
# where several people share the cluster, gives them credentials.
#
# Called by: run-steps.sh, as root. Environment: NODE_TYPE, BUNDLE, TRAINING_ETC, TRAINING_ROOT, TRAINING_STATE,
#   TRAINING_SHARED, TRAINING_EFS, METRICS, METRICS_BUDGET_USD, and PATH, which the timers get too. Safe to run again: an
#   existing timer gets the programs of the new bundle, and the service starts again with it. A node also works without the timers: a failure is reported, and
#   the node starts.
# Required: no
# Budget: 25 s
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/put.sh"

readonly CFNCONFIG="$TRAINING_ROOT/etc/parallelcluster/cfnconfig"
readonly UNITS="$TRAINING_ROOT/etc/systemd/system"
timers=()

# A trap on EXIT: an unset variable ends a script without running any other trap.
report_failure() {
  local -r status=$?
  if ((status)); then printf 'this node does not have all of its timers: see the line above (%s)\n' "$status" >&2; fi
}
trap report_failure EXIT

# timer NAME WHEN PURPOSE [DELAY_S] <<<SERVICE: writes the units of a timer, which starts up to DELAY_S later.
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
RandomizedDelaySec=${4:-0}

[Install]
WantedBy=timers.target
END
  timers+=("$1.timer")
}

# Prints the metrics program of this node, with its first arguments; nothing if the node has none.
program() {
  case $NODE_TYPE in
    HeadNode)
      printf 'head_node.py --state %s --runs %s' "$TRAINING_STATE/metrics" "$TRAINING_SHARED/runs"
      if exports; then
        printf ' --targets %s --prices %s --storage %s --storage %s' \
          "$TRAINING_ETC/prometheus/nodes.json" "$BUNDLE/prices" "$TRAINING_SHARED" "$TRAINING_EFS"
        if [[ -n ${METRICS_BUDGET_USD:-} ]]; then printf ' --budget-usd %s' "$METRICS_BUDGET_USD"; fi
      fi
      ;;
    ComputeFleet)
      # shellcheck source=/dev/null
      source "$TRAINING_ETC/partitions/${cfn_scheduler_queue_name:?is not in cfnconfig}.env"
      if [[ $ACCELERATOR_KIND != none ]] || exports; then printf 'compute_node.py %s' "$ACCELERATOR_KIND"; fi
      ;;
  esac
}

exports() { [[ ${METRICS:-cloudwatch} != cloudwatch ]]; }

# Stops and removes what steps 86 to 88 of an earlier bundle started.
stop_exporting() {
  local unit
  for unit in node-exporter prometheus alertmanager; do
    if [[ ! -e $UNITS/training-cluster-$unit.service ]]; then continue; fi
    timeout 20 systemctl disable --now "training-cluster-$unit.service"
    rm -f "$UNITS/training-cluster-$unit.service"
  done
  if [[ $NODE_TYPE == HeadNode ]]; then
    rm -f "$TRAINING_ROOT/opt/slurm/etc/scripts/"{prolog,epilog}.d/20-training-cluster-metrics
  fi
}

source "$CFNCONFIG"
cluster="--cluster ${stack_name:?is not in cfnconfig} --region ${cfn_region:?is not in cfnconfig}"
runs="$(program)"
if exports; then
  when='*:*:0/30' limit=28 cluster+=" --textfiles $TRAINING_ROOT/run/training-cluster-metrics"
else
  when='*:0/2' limit=50
  stop_exporting
fi
if [[ -n $runs ]]; then
  # CloudWatch accepts 500 PutMetricData requests a second from an account (quota L-8BC498D4), which 500 nodes would
  # send in the same second. Shorter than INTERVAL_S of metrics/cloudwatch.py, which finds the run to publish by its time.
  timer training-cluster-metrics "$when" "publish metrics of this node" 20 <<END
Environment="PATH=/opt/slurm/bin:/opt/aws/neuron/bin:$PATH"
ExecStart=/usr/bin/env python3 $BUNDLE/bootstrap/metrics/$runs $cluster
TimeoutStartSec=$limit
Nice=10
END
fi
if [[ $NODE_TYPE == ComputeFleet ]]; then
  # All nodes check in the same minute: if a check wrongly fails everywhere, the drain limit sees all of the verdicts.
  # Not before slurmd runs, which ParallelCluster starts after all steps: until then 89-await-fabric.sh waits for the GPUs.
  timer training-cluster-health hourly "check this node's health while it is idle" <<END
Environment="PATH=/opt/slurm/bin:$PATH"
ExecCondition=/usr/bin/env pgrep --exact slurmd
ExecStart=/usr/bin/env bash $BUNDLE/bootstrap/health/judge-node.sh idle
SuccessExitStatus=9
TimeoutStartSec=120
END
  config="${TRAINING_CLUSTER_CONFIG:-$TRAINING_ROOT/opt/parallelcluster/shared/cluster-config.yaml}"
  users_role="$(sed -nE 's/.*users-role=([A-Za-z0-9_+=,.@-]+).*/\1/p' "$config" 2>/dev/null || true)"
  put "$UNITS/training-cluster-node.service" <<END
[Unit]
Description=Training Cluster: hear that EC2 takes this node

[Service]
Environment="PATH=/opt/slurm/bin:$PATH" "USERS_ROLE=$users_role"
ExecStart=/usr/bin/env python3 $BUNDLE/bootstrap/services/node_service.py
Restart=always
RestartSec=10

[Install]
WantedBy=multi-user.target
END
else
  arguments="$(<"$TRAINING_ETC/bootstrap-arguments")"
  # The same limit as LOCK_S of bootstrap.sh, which waits that long for another run to end.
  timer training-cluster-follow '*:0/15' "take the bundle that the cluster config names" <<END
Environment="PATH=$PATH" BOOTSTRAP_MOMENT=follow
ExecStart=/usr/bin/env bash $BUNDLE/bootstrap/bootstrap.sh $arguments
TimeoutStartSec=900
END
fi
if [[ $NODE_TYPE == HeadNode ]]; then
  timer training-cluster-blocks '*:0/2' "reserve the nodes of Capacity Blocks that end" <<END
Environment="PATH=/opt/slurm/bin:$PATH"
ExecStart=/usr/bin/env python3 $BUNDLE/bootstrap/services/block_ends.py $cfn_region
TimeoutStartSec=110
END
  timer training-cluster-qos '*:0/2' "give waiting jobs the QOS of their account" <<END
Environment="PATH=/opt/slurm/bin:$PATH"
ExecStart=/usr/bin/env bash $BUNDLE/bootstrap/services/renew-qos.sh
TimeoutStartSec=110
END
  if grep -qx auto "$TRAINING_STATE/topology" 2>/dev/null; then
    # Five calls of TIMEOUT_S, and RECONFIGURE_S; less than LOCK_S of bootstrap.sh, which waits for this run's end.
    timer training-cluster-topology '*:*' "tell Slurm where nodes are in EC2's network" <<END
Environment="PATH=/opt/slurm/bin:$PATH"
ExecStart=/usr/bin/env python3 $BUNDLE/bootstrap/services/topology.py $stack_name $cfn_region
TimeoutStartSec=660
END
  elif [[ -e $UNITS/training-cluster-topology.timer ]]; then
    timeout 10 systemctl disable --now training-cluster-topology.timer
    rm -f "$UNITS/training-cluster-topology".{timer,service}
  fi
fi
timeout 10 systemctl daemon-reload
timeout 10 systemctl enable --now "${timers[@]}"
if [[ $NODE_TYPE == ComputeFleet ]]; then
  timeout 10 systemctl enable training-cluster-node.service
  timeout 10 systemctl restart training-cluster-node.service
fi
