# shellcheck shell=bash
#
# Sourced by the checks: how one says that its node is unfit for a job.
#
# A status of its own, so that a check which has a fault itself (a shell error is 1, a missing file 127) never counts
# as a verdict on the node: the same check runs on all nodes, and would take all of them from the cluster at once.
export UNFIT=9

# unfit SENTENCE: ends the check. The sentence is what `sinfo -R` shows people.
unfit() {
  printf '%s\n' "$*"
  exit "$UNFIT"
}

# need PROGRAM WHY: what the check asks is not there, on a node that should have it. A verdict, for NVIDIA's program: a
# node without it is none for GPU jobs. Others are lacking from an image, so from all nodes alike: no verdict.
need() {
  if command -v "$1" >/dev/null; then return; fi
  if [[ $1 == nvidia-smi ]]; then unfit "$1 is missing, so nobody knows whether $2"; fi
  printf '%s is missing, so nobody knows whether %s\n' "$1" "$2" >&2
  exit 1
}

# last_line TEXT: what a program that failed said at the end.
last_line() { printf '%s\n' "$1" | grep -v '^[[:space:]]*$' | tail -n 1 || printf 'nothing\n'; }
