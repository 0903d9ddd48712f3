#!/usr/bin/env bash
# Checks the values of the variables that job.slurm itself reads, before the job changes anything.
#
# Sourced by: job.slurm, as the user, on the job's first node. Run by: trainctl submit, on a laptop, with the settings
#   alone in its environment: bash job_settings.sh WORKLOAD; it prints a message and exits 1, or exits 0.
# Reads: CONTAINER_IMAGE, CONTAINER_MOUNTS, LAUNCHER, MAX_RESTARTS, HANG_TIMEOUT_S, AFTER_FAILURE_S, PREPARE_ONLY,
#   STRICT_NETWORK, REQUEUE_AT_TIME_LIMIT, LOCAL_ENVIRONMENT, NUMA_BINDING, NOTIFY, NCCL_DEBUG, VERIFY_DATA; the headers of the
#   workload beside this file.
# Writes: LAUNCHER, MAX_RESTARTS, HANG_TIMEOUT_S and AFTER_FAILURE_S, exported with their defaults.

# shellcheck source=assets/training/container_image.sh
source "$(dirname "${BASH_SOURCE[0]}")/container_image.sh"

# check_job_settings FOLDER: FOLDER is that of the workload.
check_job_settings() {
  export MAX_RESTARTS="${MAX_RESTARTS:-3}" HANG_TIMEOUT_S="${HANG_TIMEOUT_S:-480}" AFTER_FAILURE_S="${AFTER_FAILURE_S:-60}"
  [[ $MAX_RESTARTS =~ ^[0-9]+$ ]] || die "MAX_RESTARTS is '$MAX_RESTARTS', which is not a number." \
    "Type a whole number, 0 for none: MAX_RESTARTS=3 sbatch ..."
  [[ $HANG_TIMEOUT_S =~ ^[0-9]+$ ]] || die "HANG_TIMEOUT_S is '$HANG_TIMEOUT_S', which is not a number." \
    "Type whole seconds, 0 for none: HANG_TIMEOUT_S=480 sbatch ..."
  [[ $AFTER_FAILURE_S =~ ^[1-9][0-9]*$ ]] || die "AFTER_FAILURE_S is '$AFTER_FAILURE_S', which is not a number of seconds." \
    "Type whole seconds, at least 1: AFTER_FAILURE_S=60 sbatch ..."
  check_word PREPARE_ONLY 0 1
  check_word REQUEUE_AT_TIME_LIMIT 0 1
  check_word STRICT_NETWORK 0 1
  [[ ${STRICT_NETWORK:-0} == 0 || -z ${NCCL_DEBUG:-} ]] ||
    die "STRICT_NETWORK=1 reads what NCCL writes with settings of its own, and NCCL_DEBUG is '$NCCL_DEBUG'." \
      "Leave one of them out."
  check_word LOCAL_ENVIRONMENT auto yes no
  check_word VERIFY_DATA yes no
  check_word NUMA_BINDING node socket exclusive core-complex
  # The value is not shown, since Slurm and Systems Manager keep their input.
  [[ ${NOTIFY:-webhook} != *://* ]] || die "NOTIFY holds an address, which is a secret." \
    "Write it into ~/.training-cluster/webhook on the cluster (chmod 600), and type NOTIFY=webhook sbatch ..."
  check_word NOTIFY webhook mail
  check_launcher "$1"
  check_container
}

# check_word NAME WORD...: refuses a variable that is set to another value.
check_word() {
  local -r value="${!1:-}" words="${*:2}"
  if [[ -n $value && " $words " != *" $value "* ]]; then
    die "$1 is '$value'; allowed: ${words// /, }." "Type one of these: $1=$2 sbatch ..."
  fi
}

check_launcher() {
  local -r name="$(basename "$1")"
  local takes
  takes="$(sed -n 's/^# Launchers: //p' "$1/train.sh")"
  : "${takes:=torchrun}"
  export LAUNCHER="${LAUNCHER:-${takes%% *}}"
  [[ " $takes " == *" $LAUNCHER "* ]] || die "$name cannot be started with LAUNCHER=$LAUNCHER." \
    "Take one of these: ${takes// /, }."
  [[ -z ${NUMA_BINDING:-} || $LAUNCHER == torchrun ]] ||
    die "NUMA_BINDING has no effect with LAUNCHER=$LAUNCHER: torchrun alone binds its ranks." \
      "Leave NUMA_BINDING out$([[ " $takes " != *" torchrun "* ]] || printf ', or give LAUNCHER=torchrun')."
  if [[ $LAUNCHER == mpirun ]] && ! grep -qs '^impi-rt' "$1/requirements.txt"; then
    die "$name has no Intel MPI: its requirements.txt does not name impi-rt." \
      "Add it there, or take another launcher: LAUNCHER=srun sbatch ..."
  fi
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  set -euo pipefail
  # die WHAT HOW-TO-MEND
  die() {
    printf '%s\n  %s\n' "$1" "$2" >&2
    exit 1
  }
  check_job_settings "$(dirname "${BASH_SOURCE[0]}")/$1"
fi
