#!/usr/bin/env bash
#
# Before each job, on each of its nodes: brings a node that missed an update up to date, and keeps jobs off a node
# that is unfit.
#
# Called by: Slurm (Prolog=/opt/slurm/etc/scripts/prolog.d/*), as root, on compute nodes, with no PATH. Step
#   90-install-prolog.sh puts it there, on the head node, which shares the folder to all nodes; it writes the
#   TRAINING_ variables below the first line. Environment of Slurm's: SLURMD_NODENAME, SLURM_JOB_ID,
#   SLURM_JOB_PARTITION. Safe to run again, and twice at a time.
#
# 1. If the cluster config names another bundle than this node runs, the node's own bootstrap.sh fetches it.
# 2. check-node.sh of that bundle looks at the node. If it is unfit, the node is drained with the reason, which
#    `sinfo -R` shows, and this ends with 1. Slurm then requeues the job, which starts elsewhere; the reason stays
#    as it is, since Slurm gives its own ("Prolog error") only to nodes that have none. ParallelCluster replaces a
#    drained node when its last job has ended (clustermgtd), and keeps the reason in this log, in CloudWatch.
#    A check that calls most nodes unfit is braked (health/brake.sh): it drains none, and the node's comment says so.
#
# Any exit other than 0 takes a node from the cluster. So nothing ends with 1 but a verdict on this very node. What is
# wrong with the prolog itself (no bundle, no cluster config, no settings of the partition, a bucket that does not
# answer, a check with a fault) is the same on all nodes at once, and would take the whole cluster: such a job starts
# unchecked, on the bundle that the node has, and the log says so.
set -uo pipefail

export TRAINING_ROOT="${TRAINING_ROOT:-}"
export TRAINING_ETC="${TRAINING_ETC:-/etc/training-cluster}"
export TRAINING_BUNDLES="${TRAINING_BUNDLES:-$TRAINING_ROOT/opt/training-cluster/bundles}"
export NODE_TYPE=ComputeFleet # as slurmd runs nowhere else
export PATH="${TRAINING_ROOT:+$TRAINING_ROOT/usr/bin:}/opt/slurm/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
readonly CURRENT="$TRAINING_BUNDLES/current"
readonly CONFIG="${TRAINING_CLUSTER_CONFIG:-$TRAINING_ROOT/opt/parallelcluster/shared/cluster-config.yaml}"
readonly CFNCONFIG="$TRAINING_ROOT/etc/parallelcluster/cfnconfig"
readonly LOGS="$TRAINING_ROOT/var/log/training-cluster"
# On all nodes but the batch host the prolog runs while srun waits for its tasks, which it does MessageTimeout: 60 s in
# ParallelCluster. A refresh runs start steps only, which take seconds.
readonly REFRESH_S=30 LOCK_S=5 RETRY_MIN=15 UNFIT=9

# Slurm throws away what a prolog prints.
log() {
  printf '%s health: %s, job %s: %s\n' "$(date -u '+%F %T')" "${SLURMD_NODENAME:-?}" "${SLURM_JOB_ID:-?}" "$*" \
    2>/dev/null >>"$LOGS/health.log" || true
}

# Fetches and runs the bundle that the cluster config names, unless it is the one that is here.
refresh() {
  local has
  local -a arguments
  has="$(basename "$(readlink "$CURRENT")")"
  if [[ ! -r $CONFIG ]] || ! [[ $(<"$CONFIG") =~ bundle-sha256=([0-9a-f]{64}) ]]; then
    log "no bundle is named in $CONFIG: goes on with $has"
    return
  fi
  if [[ ${BASH_REMATCH[1]} == "$has" ]]; then return; fi
  if ! read -r -a arguments <"$TRAINING_ETC/bootstrap-arguments"; then
    log "$TRAINING_ETC/bootstrap-arguments is missing: goes on with $has"
    return
  fi
  local -r failed="$LOGS/.refresh-failed-${BASH_REMATCH[1]}"
  if [[ -n $(find "$failed" -mmin "-$RETRY_MIN" 2>/dev/null) ]]; then
    log "the bundle ${BASH_REMATCH[1]} failed here in the last $RETRY_MIN min: goes on with $has"
    return
  fi
  log "the cluster config names another bundle: ${BASH_REMATCH[1]}"
  if ! { exec 9>"$LOGS/.refresh.lock"; } 2>/dev/null; then
    log "no lock in $LOGS: goes on with $has"
    return
  fi
  if ! flock --timeout "$LOCK_S" 9; then
    log "another job's prolog fetches it: goes on with $has"
  elif run_bootstrap "${arguments[@]}"; then
    log "runs the new bundle"
  else
    touch "$failed"
    log "the bootstrap failed (see the lines above): goes on with $(basename "$(readlink "$CURRENT")")"
  fi
  exec 9>&-
}

# run_bootstrap ARGUMENT...: in a session of its own, all of which is ended with it: a step that is left running would
# run beside the job.
run_bootstrap() {
  local status=0
  BOOTSTRAP_MOMENT=refresh setsid bash "$CURRENT/bootstrap/bootstrap.sh" "$@" </dev/null >>"$LOGS/health.log" 2>&1 9>&- &
  local -r session=$!
  timeout "$REFRESH_S" tail --pid="$session" -f /dev/null || pkill -KILL --session "$session"
  wait "$session" || status=$?
  return "$status"
}

# The queue of this node: a partition of the user's own may hold nodes of several.
partition() {
  # shellcheck source=/dev/null
  if [[ -r $CFNCONFIG ]]; then (set +u && source "$CFNCONFIG" && printf '%s' "${cfn_scheduler_queue_name:-}"); fi
}

# Drains the node if it is unfit.
check() {
  local queue sentence status=0
  queue="$(partition)"
  sentence="$(bash "$CURRENT/bootstrap/health/check-node.sh" "${queue:-${SLURM_JOB_PARTITION:-}}" \
    2>>"$LOGS/health.log")" || status=$?
  if ((status == 0)) && [[ -n $sentence ]]; then
    log "UNFIT, not drained, as that is said of most nodes: $sentence"
    timeout 20 scontrol update nodename="$SLURMD_NODENAME" \
      comment="training-cluster: braked at $(date -u '+%F %T'), job ${SLURM_JOB_ID:-?}: $sentence" \
      </dev/null >>"$LOGS/health.log" 2>&1 || log "scontrol failed: the node has no such comment"
  elif ((status == 0)); then
    log "fit"
  elif ((status == UNFIT)) && [[ -n $sentence ]]; then
    log "unfit, drained: $sentence"
    timeout 20 scontrol update nodename="$SLURMD_NODENAME" state=drain reason="training-cluster: $sentence" \
      </dev/null >>"$LOGS/health.log" 2>&1 || log "scontrol failed: Slurm drains the node without this reason"
    exit 1
  else
    log "the checks themselves failed ($status): the job starts unchecked"
  fi
}

main() {
  mkdir -p "$LOGS" 2>/dev/null
  if [[ ! -r $CURRENT/bootstrap/health/check-node.sh ]]; then
    log "$CURRENT has no health/check-node.sh: the job starts unchecked"
    return
  fi
  refresh
  check
}

main
exit 0
