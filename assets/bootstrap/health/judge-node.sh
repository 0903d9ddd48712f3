#!/usr/bin/env bash
#
# Checks this node, and drains it if it is unhealthy.
#
#   judge-node.sh before | after | idle | asked
#
# Called by: prolog.sh before each job and epilog.sh after it; the hourly timer of steps/85-start-timers.sh (idle);
#   services/node_service.py (asked), between two starts of a job. As root. Safe to run again. It is a part of the bundle, so that a node judges with the checks that it runs.
# Stdout, if asked: why the node is unhealthy. Exit status: 9 if the node is unhealthy, so that the prolog refuses the job; else 0. A fault of the checks
#   themselves affects all nodes at once, and is not a verdict: the log reports it.
# Environment: TRAINING_ROOT, TRAINING_ETC (default /etc/training-cluster), PATH; SLURM_JOB_ID, SLURM_JOB_PARTITION and SLURMD_NODENAME, as Slurm sets
#   them for a prolog. Writes: health.log.
#
# A node is drained with the reason, which `sinfo -R` shows, unless it already drains or is down, since the first reason
# remains. A check that reports most nodes as unhealthy is braked (drain_limit.sh): it drains no node, and the node's
# comment shows that.
set -uo pipefail

HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
export TRAINING_ROOT="${TRAINING_ROOT:-}" TRAINING_ETC="${TRAINING_ETC:-/etc/training-cluster}"
readonly HERE WHEN="${1:?usage: judge-node.sh before | after | idle | asked}"
readonly CFNCONFIG="$TRAINING_ROOT/etc/parallelcluster/cfnconfig"
readonly LOGS="$TRAINING_ROOT/var/log/training-cluster" UNHEALTHY=9

case $WHEN in
  before) readonly MOMENT="job ${SLURM_JOB_ID:-?}" ELSE="the job starts unchecked" ;;
  after) readonly MOMENT="after job ${SLURM_JOB_ID:-?}" ELSE="the node stays in service" ;;
  idle) readonly MOMENT="idle" ELSE="the node stays in service" ;;
  asked) readonly MOMENT="between starts of a job" ELSE="the node stays in service" ;;
  *)
    printf 'judge-node.sh: the moment is %s; allowed: before, after, idle, asked\n' "$WHEN" >&2
    exit 1
    ;;
esac

# Logs to a file, since Slurm discards the output of prologs and epilogs.
log() {
  printf '%s health: %s, %s: %s\n' "$(date -u '+%F %T')" "$SLURMD_NODENAME" "$MOMENT" "$*" \
    2>/dev/null >>"$LOGS/health.log" || true
}

# Prints this node's name in Slurm. ParallelCluster gives it as the host's name, unless the config asks for EC2's own.
node_name() {
  local -r named="$TRAINING_ROOT/etc/parallelcluster/slurm_plugin/slurm_nodename"
  if [[ -r $named ]]; then tr -d '[:space:]' <"$named"; else hostname --short; fi
}

# Prints this node's queue, because a partition that the user defined may have nodes of several queues.
partition() {
  if [[ -r $CFNCONFIG ]]; then (set +u && source "$CFNCONFIG" && printf '%s' "${cfn_scheduler_queue_name:-}"); fi
}

# runs_a_job: true if a step runs here. slurmstepd's title names the step; its helper "slurmstepd infinity" has none.
runs_a_job() { pgrep --full 'slurmstepd: \[' >/dev/null; }

# is_leaving: true if the node drains already, or is down or powering down.
is_leaving() {
  local fields
  fields="$(timeout 20 scontrol show node --oneliner "$SLURMD_NODENAME" </dev/null 2>/dev/null)" || return 1
  [[ $fields =~ \ State=([^ ]*(DRAIN|DOWN)[^ ]*) ]] && log "its state is ${BASH_REMATCH[1]}"
}

# update FIELD=VALUE...: changes the node in Slurm.
update() {
  timeout 20 scontrol update nodename="$SLURMD_NODENAME" "$@" </dev/null >>"$LOGS/health.log" 2>&1
}

main() {
  local queue sentence status=0
  mkdir -p "$LOGS" 2>/dev/null
  if [[ $WHEN == idle ]] && runs_a_job; then return; fi
  queue="$(partition)"
  sentence="$(bash "$HERE/check-node.sh" "${queue:-${SLURM_JOB_PARTITION:-}}" 2>>"$LOGS/health.log")" || status=$?
  if ((status == 0)) && [[ -n $sentence ]]; then
    log "UNHEALTHY, not drained: the same is reported of most nodes: $sentence"
    update comment="training-cluster: braked at $(date -u '+%F %T'), $MOMENT: $sentence" ||
      log "scontrol failed: the node does not get this comment"
  elif ((status == 0)); then
    log "healthy"
  elif ((status == UNHEALTHY)) && [[ -n $sentence ]]; then
    if [[ $WHEN == asked ]]; then
      log "unhealthy, drained after the job: $sentence"
      printf '%s\n' "$sentence"
    elif is_leaving; then
      log "unhealthy, not drained again: $sentence"
    else
      log "unhealthy, drained: $sentence"
      update state=drain reason="training-cluster: $sentence" ||
        log "scontrol failed: the node is not drained with this reason"
    fi
    return "$UNHEALTHY"
  else
    log "the checks themselves failed ($status): $ELSE"
  fi
}

SLURMD_NODENAME="${SLURMD_NODENAME:-$(node_name)}"
export SLURMD_NODENAME
main
