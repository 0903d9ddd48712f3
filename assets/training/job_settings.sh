#!/usr/bin/env bash
# shellcheck disable=SC2154  # job.slurm's variables
# Checks the values of the variables that job.slurm itself reads, before the job changes anything; writes a start's settings down.
#
# Sourced by: job.slurm, as the user, on the job's first node. Run by: trainctl submit, on a laptop, with the settings
#   alone in its environment: bash job_settings.sh WORKLOAD; it prints a message and exits 1, or exits 0.
# Reads: the variables of variables.tsv, NCCL_DEBUG; the headers of the workload beside this file.
# Exports: LAUNCHER, and the variables of variables.tsv that are numbers, with their defaults.
#
# Columns of variables.tsv: name; allowed (words; N..: whole numbers of N or more; -: any value); default; meaning.

source "$(dirname "${BASH_SOURCE[0]}")/container_image.sh"

# Parts of names of variables whose values no report shows.
readonly SECRET_NAMES='TOKEN|SECRET|PASS|KEY|CREDENTIAL|AUTH|_PWD'

# check_job_settings FOLDER: FOLDER is the workload's.
check_job_settings() {
  local name allowed default
  # The value is not shown, since Slurm and Systems Manager keep their input.
  [[ ${NOTIFY:-webhook} != *://* ]] || die "NOTIFY holds an address, which is a secret." \
    "Write it into ~/.training-cluster/webhook on the cluster (chmod 600), and type NOTIFY=webhook sbatch ..."
  while IFS=$'\t' read -r name allowed default _; do
    case $allowed in
      allowed | -) ;;
      *..) check_number "$name" "${allowed%..}" "$default" ;;
      *) check_word "$name" "$allowed" ;;
    esac
  done <"$(dirname "${BASH_SOURCE[0]}")/variables.tsv"
  [[ ${STRICT_NETWORK:-0} == 0 || -z ${NCCL_DEBUG:-} ]] ||
    die "STRICT_NETWORK=1 reads what NCCL writes with settings of its own, and NCCL_DEBUG is '$NCCL_DEBUG'." \
      "Leave one of them out."
  check_launcher "$1"
  check_container
}

# check_word NAME WORDS: refuses a variable that is set to another value.
check_word() {
  local -r value="${!1:-}"
  if [[ -n $value && " $2 " != *" $value "* ]]; then
    die "$1 is '$value'; allowed: ${2// /, }." "Type one of these: $1=${2%% *} sbatch ..."
  fi
}

# check_number NAME LEAST DEFAULT: exports a variable with its default, if it has one (-: none), and refuses another value
# than a whole number.
check_number() {
  local least="0 for none" of=""
  if [[ -z ${!1:-} && $3 == - ]]; then return; fi
  if (($2)); then least="at least $2" of=" of $2 or more"; fi
  export "$1=${!1:-$3}"
  # Arithmetic of bash takes 060 for 48, and fails on 08.
  if [[ ! ${!1} =~ ^(0|[1-9][0-9]*)$ ]] || ((${!1} < $2)); then
    die "$1 is '${!1}', which is not a number$of." "Type a whole number, $least: $1=${3/#-/$2} sbatch ..."
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
  if [[ $LAUNCHER == mpirun ]]; then
    [[ $HOSTTYPE == x86_64 ]] ||
      die "Intel MPI is for x86_64, and these nodes are $HOSTTYPE." "Take another launcher: LAUNCHER=srun sbatch ..."
    grep -qs '^impi-rt' "$1/requirements.txt" ||
      die "$name has no Intel MPI: its requirements.txt does not name impi-rt." \
        "Add it there, or take another launcher: LAUNCHER=srun sbatch ..."
  fi
}

# note_settings FILE: writes the settings of this start for reports, as lines NAME=value.
note_settings() {
  local name value
  for name in $(names_of_settings); do
    value="${!name-}"
    # An address may hold a password.
    if [[ $value != *://*@* ]]; then printf '%s=%s\n' "$name" "${value//$'\n'/ }"; fi
  done >"$1"
}

# Prints the exported variables that the partition's file or the workload names: as they are (MAX_STEPS,
# ${MAX_STEPS}), or as a field of its settings or of the shared ones (max_steps: int). Leaves out names of secrets, and
# variables that differ between any two starts.
names_of_settings() {
  local -r folder="$training/$workload"
  {
    printf '%s\n' TRAINING_REHEARSAL LAUNCHER NNODES NPROC_PER_NODE CONTAINER_{IMAGE,FILE,DIGEST,BYTES}
    sed -n 's/^export \([A-Z][A-Z0-9_]*\)=.*/\1/p' "$TRAINING_ETC/partitions/$SLURM_JOB_PARTITION.env"
    grep -ohE '\b[A-Z][A-Z0-9_]+\b' "$folder"/*.py "$folder"/*.sh
    sed -n 's/^    \([a-z][a-z0-9_]*\): .*/\1/p' "$folder"/*.py "$training/trainkit/run/settings.py" | tr '[:lower:]' '[:upper:]'
  } 2>/dev/null | LC_ALL=C sort -u | LC_ALL=C comm -12 - <(compgen -e | LC_ALL=C sort -u) |
    grep -Ev "$SECRET_NAMES" |
    grep -Ev '^(PATH|HOME|USER|SHELL|PWD|LANG|TERM|TMPDIR|TRAINING_(SHARED|ETC|VENVS)|THIS_JOB)$' |
    grep -Ev '^(SLURM|MASTER)_|^(RUN|DATA|CHECKPOINT)_DIR$' || true
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
