#!/usr/bin/env bash
#
# Before each job, on each of its nodes: updates a node that missed an update, and keeps jobs off an unhealthy node.
#
# Called by: Slurm (Prolog=/opt/slurm/etc/scripts/prolog.d/*), as root, on compute nodes, with no PATH. Step
#   90-install-prolog.sh installs it on the head node, which shares the folder with all nodes, and writes the
#   TRAINING_ variables below the first line. Environment by Slurm: SLURMD_NODENAME, SLURM_JOB_ID,
#   SLURM_JOB_UID, SLURM_JOB_PARTITION, SLURM_JOB_NODELIST. Safe to run again, and twice at a time.
#
# 1. If the cluster config names another bundle than this node runs, the node's own bootstrap.sh fetches it.
# 2. If the cluster has users, peers.sh lets the job's nodes connect to this one.
# 3. judge-node.sh of that bundle checks the node. An unhealthy node is drained with the reason, which `sinfo -R`
#    shows, and the prolog ends with 1. Slurm then requeues the job, whose script has not started yet
#    (PrologFlags=Alloc,DeferBatch), and which starts elsewhere; the reason stays, since Slurm sets its own ("Prolog
#    error") only on nodes without one. ParallelCluster replaces a drained node when its last job has ended
#    (clustermgtd); the reason stays in the log, in CloudWatch.
#
# Slurm drains a node at any exit status other than 0, so only a verdict on this node ends with 1. A fault of the
# prolog itself (no bundle, no cluster config, no settings of the partition, a bucket that does not answer, a faulty
# check) affects all nodes at once, and would drain the whole cluster: such a job starts unchecked, on the bundle that
# the node has, and the log reports it.
set -uo pipefail

export TRAINING_ROOT="${TRAINING_ROOT:-}"
export TRAINING_ETC="${TRAINING_ETC:-/etc/training-cluster}"
export TRAINING_BUNDLES="${TRAINING_BUNDLES:-$TRAINING_ROOT/opt/training-cluster/bundles}"
export NODE_TYPE=ComputeFleet # slurmd runs on no other nodes
export PATH="${TRAINING_ROOT:+$TRAINING_ROOT/usr/bin:}/opt/slurm/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
readonly CURRENT="$TRAINING_BUNDLES/current"
readonly CONFIG="${TRAINING_CLUSTER_CONFIG:-$TRAINING_ROOT/opt/parallelcluster/shared/cluster-config.yaml}"
readonly LOGS="$TRAINING_ROOT/var/log/training-cluster"
# Slurm kills no prolog (PrologEpilogTimeout: unlimited), but stops waiting: slurmctld takes a batch job as missing after
# BatchStartTimeout, 180 s in ParallelCluster (_purge_missing_jobs). A refresh runs start steps only, which take seconds.
readonly REFRESH_S=30 LOCK_S=5 PEERS_S=60 RETRY_MIN=15 UNHEALTHY=9

# Logs to a file, since Slurm discards a prolog's output.
log() {
  printf '%s health: %s, job %s: %s\n' "$(date -u '+%F %T')" "${SLURMD_NODENAME:-?}" "${SLURM_JOB_ID:-?}" "$*" \
    2>/dev/null >>"$LOGS/health.log" || true
}

# Fetches and runs the bundle that the cluster config names, unless the node has it.
refresh() {
  local has
  local -a arguments
  has="$(basename "$(readlink "$CURRENT")")"
  if [[ ! -r $CONFIG ]] || ! [[ $(<"$CONFIG") =~ bundle-sha256=([0-9a-f]{64}) ]]; then
    log "$CONFIG names no bundle: continues with $has"
    return
  fi
  if [[ ${BASH_REMATCH[1]} == "$has" ]]; then return; fi
  if ! read -r -a arguments <"$TRAINING_ETC/bootstrap-arguments"; then
    log "$TRAINING_ETC/bootstrap-arguments is missing: continues with $has"
    return
  fi
  local -r failed="$LOGS/.refresh-failed-${BASH_REMATCH[1]}"
  if [[ -n $(find "$failed" -mmin "-$RETRY_MIN" 2>/dev/null) ]]; then
    log "the bundle ${BASH_REMATCH[1]} failed here in the last $RETRY_MIN min: continues with $has"
    return
  fi
  log "the cluster config names another bundle: ${BASH_REMATCH[1]}"
  if ! { exec 9>"$LOGS/.refresh.lock"; } 2>/dev/null; then
    log "no lock in $LOGS: continues with $has"
    return
  fi
  if ! flock --timeout "$LOCK_S" 9; then
    log "another job's prolog fetches it: continues with $has"
  elif run_bootstrap "${arguments[@]}"; then
    log "runs the new bundle"
  else
    touch "$failed"
    log "the bootstrap failed (see the lines above): continues with $(basename "$(readlink "$CURRENT")")"
  fi
  exec 9>&-
}

# run_bootstrap ARGUMENT...: runs it in its own session and ends the whole session, since a process that a step leaves
# would run during the job.
run_bootstrap() {
  local status=0
  BOOTSTRAP_MOMENT=refresh setsid bash "$CURRENT/bootstrap/bootstrap.sh" "$@" </dev/null >>"$LOGS/health.log" 2>&1 9>&- &
  local -r session=$!
  timeout "$REFRESH_S" tail --pid="$session" -f /dev/null || pkill -KILL --session "$session"
  wait "$session" || status=$?
  return "$status"
}

# Notes that the user has a job here: the epilog of the last one removes the user's files. Again, since the epilog of another
# job may just remove the user's folder.
note_job() {
  local -r job="$TRAINING_ROOT/run/training-cluster/jobs-${SLURMD_NODENAME:-}/${SLURM_JOB_UID:-}/${SLURM_JOB_ID:-}"
  mkdir -p "$job" 2>/dev/null || mkdir -p "$job" || log "$job cannot be made: the job's files stay on the node"
}

# Lets the job's nodes connect to this one, where step 74 keeps other nodes off.
open_to_peers() {
  if [[ ! -d $TRAINING_ROOT/run/training-cluster/peers ]]; then return; fi
  timeout "$PEERS_S" bash "$CURRENT/bootstrap/peers.sh" open "$SLURM_JOB_ID" </dev/null >>"$LOGS/health.log" 2>&1 ||
    log "the job's other nodes cannot connect to this one: see the lines above"
}

main() {
  local status=0
  mkdir -p "$LOGS" 2>/dev/null
  if [[ -n ${SLURM_JOB_UID:-} ]]; then note_job; fi
  if [[ ! -r $CURRENT/bootstrap/health/check-node.sh ]]; then
    log "$CURRENT has no health/check-node.sh: the job starts unchecked"
    return
  fi
  refresh
  open_to_peers
  if [[ ! -r $CURRENT/bootstrap/health/judge-node.sh ]]; then
    log "$CURRENT has no health/judge-node.sh: the job starts unchecked"
    return
  fi
  bash "$CURRENT/bootstrap/health/judge-node.sh" before || status=$?
  if ((status == UNHEALTHY)); then exit 1; fi
}

main
exit 0
