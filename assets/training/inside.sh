#!/usr/bin/env bash
# Runs a workload's script in the job's container, after it has replaced variables that are correct only on the node.
#
# Called by: job.slurm through srun, as the user, in the container: inside.sh SCRIPT [ARGUMENT...]. It replaces itself by
#   the script, so the script gets Slurm's signals. Safe to run again.
# Writes: CONTAINER_MARKS/NODE. Reads: CONTAINER_DIGEST, EFA_FLOOR (the oldest EFA installer that this project accepts; empty: unknown),
#   STRICT_NETWORK, TMPDIR, HOME; CONTAINER_ROOT (a folder in the place of /, in tests).
# Prints, before a prepare.sh, the image's system and network software.
set -euo pipefail

readonly amazon="${CONTAINER_ROOT:-}/opt/amazon"

# older A B: true if version A is older than version B.
older() { [[ $1 != "$2" && $(printf '%s\n%s\n' "$1" "$2" | sort --version-sort | head -n 1) == "$1" ]]; }

say() { printf '%s container: %s\n' "$(date +%H:%M:%S)" "$*" >&2; }

# Prints the version of the EFA installer whose software this container has, or nothing.
efa_version() {
  sed -n 's/^# EFA installer version: *//p' "$amazon/efa_installed_packages" 2>/dev/null | head -n 1 || true
}

describe_network() {
  local version whose="the image's own"
  # Also true on a node without EFA cards.
  compgen -G "${CONTAINER_ROOT:-}/dev/infiniband/uverbs*" >/dev/null || return 0
  version="$(efa_version)"
  if [[ ${CONTAINER_EFA:-} == host ]]; then whose="the node's"; fi
  if [[ -z $version && ! -d $amazon/efa ]]; then
    say 'there is no EFA software here: NCCL will send over TCP'
    network_is_bad 'Take an image with it, or have the nodes mount theirs (docs/how-to/containers.md).'
  elif [[ -z $version ]]; then
    say "EFA software of unknown version ($whose)"
  elif [[ -n ${EFA_FLOOR:-} ]] && older "$version" "$EFA_FLOOR"; then
    say "EFA installer $version ($whose) is too old: $EFA_FLOOR or newer is what these nodes are tested with"
    network_is_bad "Build the image with a newer EFA installer, or without /opt/amazon/efa: the node's is used then."
  else
    say "EFA installer $version ($whose)"
  fi
}

# network_is_bad FIX: ends the job if STRICT_NETWORK is 1.
network_is_bad() {
  say "$1"
  if [[ ${STRICT_NETWORK:-0} == 1 ]]; then exit 1; fi
}

describe() {
  # shellcheck source=/dev/null
  say "image ${CONTAINER_DIGEST:-}, $(source "${CONTAINER_ROOT:-}/etc/os-release" && printf '%s' "${PRETTY_NAME:-}") on the kernel $(uname -r)"
  describe_network
}

# These variables name programs and folders of the node.
unset TRAINING_PYTHON TRAINING_ROOT PIP_CONSTRAINT
export CONTAINER_INSIDE=1
# The container is whole (remove_partial_containers).
if [[ -d ${CONTAINER_MARKS:-} ]]; then : >"$CONTAINER_MARKS/${SLURMD_NODENAME:-}" || true; fi
# Enroot's hook for PyTorch images gives each task one thread; launch.sh divides the cores.
if [[ -n ${JOB_OMP_NUM_THREADS:-} ]]; then export OMP_NUM_THREADS="$JOB_OMP_NUM_THREADS"; else unset OMP_NUM_THREADS; fi
# Enroot starts a login shell, whose profile replaces the image's PATH on Debian.
path="$(sed -n 's/^PATH=//p' "${CONTAINER_ROOT:-}/etc/environment" 2>/dev/null | tail -n 1 | tr -d "\"'")" || true
export PATH="${path:-$PATH}"
if [[ ! -d ${TMPDIR:-} ]]; then unset TMPDIR; fi
if [[ ! -d ${HOME:-} || ! -w ${HOME:-} ]]; then export HOME=/tmp; fi
if [[ $1 == */prepare.sh ]]; then
  umask 022 # Slurm gives a step the umask of the job, not of its srun
  describe
fi
exec bash "$@"
