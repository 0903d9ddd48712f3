#!/usr/bin/env bash
#
# Says whether this node is fit for a job: runs the checks beside it, all at once, since a job waits for them.
#
#   check-node.sh PARTITION
#
# Called by: prolog.sh, as root, before each job; a person on a node (`sudo bash check-node.sh gpu`). Changes nothing;
#   before a job it notes what it found, for the brake.
# Stdout: what is wrong, one sentence a check, with "; " between; with exit 0 what is wrong by checks that are braked
#   (brake.sh). Stderr: what could not be checked, and how to loose the brake.
# Exit: 0 fit, 9 unfit (verdict.sh), anything else: it could not check, which is no verdict on the node.
#
# A check is a file of checks/, which prints one sentence and ends with 9 if the node is unfit. Its header says
#     # Kinds: all | space separated of: gpu neuron none   (ACCELERATOR_KIND of the partition)
#     # Where: any | node                                  (node: only on a ParallelCluster machine, as a step's)
# It reads the partition's settings (ACCELERATORS_PER_NODE, EFA_INTERFACES, SCRATCH) from its environment.
#
# All of them take under 3 s on a node that is well. One that takes LIMIT_S is a verdict, too: nvidia-smi waits for
# a lost GPU for ever, and then no signal ends it, so nothing here waits for a check that is stuck.
#
# Environment: TRAINING_ROOT, TRAINING_ETC, as of bootstrap.sh; SLURM_JOB_ID where a job waits. A name (40-efa) in
# SKIPPED is not checked: for a check that is wrong about all nodes, until a new bundle is deployed. The file is the
# head node's, shared to all.
set -euo pipefail
shopt -s inherit_errexit nullglob

HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly HERE LIMIT_S="${HEALTH_LIMIT_S:-10}"
export TRAINING_ROOT="${TRAINING_ROOT:-}" TRAINING_ETC="${TRAINING_ETC:-/etc/training-cluster}"
readonly SKIPPED="$TRAINING_ROOT/opt/slurm/etc/training-cluster-skipped-checks"
# Slurm gives a prolog no PATH. Under TRAINING_ROOT: a rehearsal's own programs stand before the machine's.
folders=/opt/amazon/efa/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH="${TRAINING_ROOT:+$TRAINING_ROOT${folders//:/:$TRAINING_ROOT}:}$folders"
# shellcheck source=assets/bootstrap/health/verdict.sh
source "$HERE/verdict.sh"
# shellcheck source=assets/bootstrap/health/brake.sh
source "$HERE/brake.sh"

declare -A found=()

say() { printf '%s\n' "$*" >&2; }

# concerns CHECK: whether it is for this kind of node.
concerns() {
  local -r name="$(basename "$1" .sh)"
  grep -qE "^# Kinds:.* (all|$ACCELERATOR_KIND)( |\$)" "$1" || return 1
  if [[ -r $SKIPPED ]] && grep -qxF "$name" "$SKIPPED"; then
    say "$name: not checked, $SKIPPED names it"
    return 1
  fi
  if grep -q '^# Where: node' "$1" && [[ ! -e $TRAINING_ROOT/etc/parallelcluster/cfnconfig ]]; then
    say "$name: not checked, this is no ParallelCluster node"
    return 1
  fi
}

# start CHECK WORK: in the background, with nothing of ours open that whoever called us could wait for.
start() {
  local -r name="$2/$(basename "$1" .sh)"
  (
    status=0
    # KILL goes to what the check has started, too; after TERM a deaf program would outlive its check.
    timeout --signal=KILL "$LIMIT_S" bash "$1" >"$name.said" 2>"$name.noise" || status=$?
    printf '%s\n' "$status" >"$name.status"
  ) </dev/null >/dev/null 2>&1 &
}

# await WORK CHECK...: until all have ended, or are stuck.
await() {
  local -r deadline=$((SECONDS + LIMIT_S + 3))
  local check
  for check in "${@:2}"; do
    until [[ -s $1/$(basename "$check" .sh).status ]] || ((SECONDS > deadline)); do sleep 0.05; done
  done
}

# verdict CHECK WORK: the sentence of one that found its node unfit.
verdict() {
  local -r name="$(basename "$1" .sh)"
  local -r of="$2/$name"
  local status=stuck
  if [[ -s $of.status ]]; then status="$(<"$of.status")"; fi
  case $status in
    0) ;;
    "$UNFIT") last_line "$(<"$of.said")" ;;
    124 | 137 | stuck) printf 'the check %s did not end within %s s\n' "$name" "$LIMIT_S" ;;
    *) say "$name: could not check ($status): $(last_line "$(<"$of.noise")")" ;;
  esac
}

# look PARTITION: runs the checks; in `found`, by their names, what is wrong.
look() {
  local -r settings="$TRAINING_ETC/partitions/$1.env"
  local check work sentence
  local -a checks=()
  [[ -r $settings ]] || { say "$settings is missing: nothing says what this node should have" && exit 1; }
  # shellcheck source=/dev/null
  source "$settings"
  # Not on a disk: it may be full.
  work="$(mktemp -d -p /dev/shm training-cluster-health-XXXXXX)"
  # shellcheck disable=SC2064  # the folder of now
  trap "rm -rf '$work'" EXIT
  for check in "$HERE"/checks/*.sh; do
    if concerns "$check"; then
      checks+=("$check")
      start "$check" "$work"
    fi
  done
  await "$work" "${checks[@]}"
  for check in "${checks[@]}"; do
    sentence="$(verdict "$check" "$work")"
    if [[ -n $sentence ]]; then found[$(basename "$check" .sh)]="$sentence"; fi
  done
}

main() {
  local -r partition="${1:?usage: check-node.sh PARTITION}"
  local check name drains="" let_by=""
  look "$partition"
  # A person is told all.
  if [[ -n ${SLURM_JOB_ID:-} ]]; then apply_brake "$partition" "${!found[@]}"; fi
  for check in "$HERE"/checks/*.sh; do
    name="$(basename "$check" .sh)"
    [[ -v found[$name] ]] || continue
    if [[ -v braked[$name] ]]; then
      let_by+="${let_by:+; }${found[$name]}"
    else
      drains+="${drains:+; }${found[$name]}"
    fi
  done
  if [[ -n $drains ]]; then unfit "$drains"; fi
  printf '%s' "$let_by"
}

main "$@"
