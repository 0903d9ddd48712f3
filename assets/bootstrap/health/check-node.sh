#!/usr/bin/env bash
#
# Reports if this node is healthy: runs all checks of checks/ at once, since a job waits for them.
#
#   check-node.sh PARTITION
#
# Called by: judge-node.sh, as root, before and after each job and on an idle node; a person on a node
#   (`sudo bash check-node.sh gpu`). Changes nothing; called by judge-node.sh it writes its verdict for drain_limit.sh.
# Stdout: one sentence for each check that reports the node as unhealthy, joined by "; "; with exit status 0 the sentences of
#   braked checks (drain_limit.sh). Stderr: checks that could not run, and how to release a braked check.
# Exit status: 0 healthy, 9 unhealthy (verdict.sh), any other: it could not check, which is not a verdict on the node.
#
# A check is a file of checks/, which prints one sentence and ends with 9 if the node is unhealthy. Its header states
#     # Kinds: all | space separated of: gpu neuron none   (ACCELERATOR_KIND of the partition)
#     # Where: any                                         (else only on a ParallelCluster machine, as a step)
#     # Limit: 20 s                                        (if it may take longer than LIMIT_S)
# It reads the partition's settings (ACCELERATORS_PER_NODE, EFA_INTERFACES, SCRATCH) from its environment.
#
# README.md has the times of the checks. A check that reaches its limit also reports the node as unhealthy: nvidia-smi
# waits forever for a lost GPU, and no signal ends it, so this script never waits for a check that hangs.
#
# Environment: TRAINING_ROOT, TRAINING_ETC, as for bootstrap.sh; SLURMD_NODENAME, by judge-node.sh. Checks whose names
# (40-efa) are in SKIPPED do not run: for a check that is wrong about all nodes, until a new bundle is deployed. The
# head node shares this file with all nodes.
set -euo pipefail
shopt -s inherit_errexit nullglob

HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly HERE LIMIT_S=10
export TRAINING_ROOT="${TRAINING_ROOT:-}" TRAINING_ETC="${TRAINING_ETC:-/etc/training-cluster}"
readonly SKIPPED="$TRAINING_ROOT/opt/slurm/etc/training-cluster-skipped-checks"
# Slurm sets no PATH for a prolog. A rehearsal's own programs, under TRAINING_ROOT, precede the machine's.
folders=/opt/amazon/efa/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH="${TRAINING_ROOT:+$TRAINING_ROOT${folders//:/:$TRAINING_ROOT}:}$folders"
source "$HERE/verdict.sh"
source "$HERE/drain_limit.sh"

declare -A found=() limits=()

say() { printf '%s\n' "$*" >&2; }

# name_of CHECK: sets `name` of its caller. It starts no program, since a job waits.
name_of() {
  name="${1##*/}"
  name="${name%.sh}"
}

# applies CHECK: true if the check is for this kind of node.
applies() {
  local name
  name_of "$1"
  grep -qE "^# Kinds:.* (all|$ACCELERATOR_KIND)( |\$)" "$1" || return 1
  if [[ -r $SKIPPED ]] && grep -qxF "$name" "$SKIPPED"; then
    say "$name: not checked, $SKIPPED names it"
    return 1
  fi
  if ! grep -q '^# Where: any' "$1" && [[ ! -e $TRAINING_ROOT/etc/parallelcluster/cfnconfig ]]; then
    say "$name: not checked, this is no ParallelCluster node"
    return 1
  fi
}

# limit_of CHECK: prints the seconds that it may take.
limit_of() {
  local limit
  limit="$(sed -n 's/^# Limit: \([0-9]*\) s.*/\1/p' "$1")"
  printf '%s\n' "${HEALTH_LIMIT_S:-${limit:-$LIMIT_S}}"
}

# start CHECK WORK: starts a check in the background, without open files that would make this script's caller wait.
start() {
  local name of
  name_of "$1"
  of="$2/$name"
  (
    status=0
    # KILL also ends the programs that the check started. A program that ignores TERM would outlive its check.
    timeout --signal=KILL "${limits[$name]}" bash "$1" >"$of.said" 2>"$of.noise" || status=$?
    printf '%s\n' "$status" >"$of.status"
  ) </dev/null >/dev/null 2>&1 &
}

# await WORK CHECK...: waits until all checks have ended, or have reached their limits.
await() {
  local check name now started
  local -i deadline
  # SECONDS follows the wall clock, of which a step would drain a healthy node.
  read -r started _ </proc/uptime
  started="${started%.*}"
  for check in "${@:2}"; do
    name_of "$check"
    deadline=$((started + ${limits[$name]} + 3))
    until [[ -s $1/$name.status ]] || { read -r now _ </proc/uptime && ((${now%.*} > deadline)); }; do sleep 0.05; done
  done
}

# verdict CHECK WORK: prints the sentence of a check that reports the node as unhealthy.
verdict() {
  local name of status=stuck
  name_of "$1"
  of="$2/$name"
  if [[ -s $of.status ]]; then status="$(<"$of.status")"; fi
  case $status in
    0) ;;
    "$UNHEALTHY") last_line "$(<"$of.said")" ;;
    124 | 137 | stuck) printf 'the check %s did not end within %s s\n' "$name" "${limits[$name]}" ;;
    *) say "$name: could not check ($status): $(last_line "$(<"$of.noise")")" ;;
  esac
}

# run_checks PARTITION: runs the checks; `found` then has their sentences, by their names.
run_checks() {
  local -r settings="$TRAINING_ETC/partitions/$1.env"
  local check name work sentence memory
  local -a checks=()
  [[ -r $settings ]] || { say "$settings is missing: the node's hardware is unknown" && exit 1; }
  source "$settings"
  # Not on a disk or in /dev/shm, which a job may have filled; a rehearsal's node may have no /run of its own.
  memory="$TRAINING_ROOT/run"
  if [[ ! -w $memory ]]; then memory=/dev/shm; fi
  work="$(mktemp -d -p "$memory" training-cluster-health-XXXXXX)"
  # shellcheck disable=SC2064  # expands now, to this folder
  trap "rm -rf '$work'" EXIT
  # Without its files each check would seem to hang, which would report the node as unhealthy.
  printf 'room\n' >"$work/room" || { say "cannot write to $memory: nothing was checked" && exit 1; }
  for check in "$HERE"/checks/*.sh; do
    if applies "$check"; then
      checks+=("$check")
      name_of "$check"
      limits[$name]="$(limit_of "$check")"
      start "$check" "$work"
    fi
  done
  await "$work" "${checks[@]}"
  for check in "${checks[@]}"; do
    sentence="$(verdict "$check" "$work")"
    name_of "$check"
    if [[ -n $sentence ]]; then found[$name]="$sentence"; fi
  done
}

main() {
  local -r partition="${1:?usage: check-node.sh PARTITION}"
  local check name drains="" reported=""
  run_checks "$partition"
  # A user who runs this script sees the sentences of all checks.
  if [[ -n ${SLURMD_NODENAME:-} ]]; then apply_drain_limit "$partition" "${!found[@]}"; fi
  for check in "$HERE"/checks/*.sh; do
    name_of "$check"
    [[ -v found[$name] ]] || continue
    if [[ -v braked[$name] ]]; then
      reported+="${reported:+; }${found[$name]}"
    else
      drains+="${drains:+; }${found[$name]}"
    fi
  done
  if [[ -n $drains ]]; then unhealthy "$drains"; fi
  printf '%s' "$reported"
}

main "$@"
