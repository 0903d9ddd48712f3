#!/usr/bin/env bash
#
# Runs the steps of an unpacked bundle that apply to the moment and the node, in the order of their numbers.
#
#   run-steps.sh start                  at a node's start: start steps, and install steps that are not done yet
#   run-steps.sh refresh                on a running node, before a job: start steps only, since the job waits
#   run-steps.sh image --recipe gpu     in an image build: install and image steps, for compute nodes
#   run-steps.sh check --recipe gpu     fails if an install or image step is not done, or out of date
#
# Called by: bootstrap.sh (start); assets/images/ (image, check), as root. Safe to run again: an install or image
#   step that is done has a stamp, and is skipped until one of its inputs changes.
# Each step's header states when and where it runs, if the node requires it, and its budget: see README.md.
#
# Environment: NODE_TYPE (start), and bootstrap.sh's environment; BUNDLE, default the folder above this one.
set -euo pipefail
shopt -s inherit_errexit nullglob

HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly HERE USAGE="usage: run-steps.sh start | refresh | image --recipe gpu|volta|neuron|cpu | check --recipe ..."
readonly MOMENT="${1:?$USAGE}"
export BUNDLE="${BUNDLE:-${HERE%/bootstrap}}"
export TRAINING_SHARED="${TRAINING_SHARED:-/fsx}" TRAINING_EFS="${TRAINING_EFS:-/efs}"
export TRAINING_ROOT="${TRAINING_ROOT:-}" TRAINING_ETC="${TRAINING_ETC:-/etc/training-cluster}"
export TRAINING_STATE="$TRAINING_ROOT/var/lib/training-cluster" TRAINING_OPT="$TRAINING_ROOT/opt/training-cluster"
readonly CFNCONFIG="$TRAINING_ROOT/etc/parallelcluster/cfnconfig"
readonly LOGS="$TRAINING_ROOT/var/log/training-cluster"
declare -A header
declare -i missing=0

# Logs to stdout, as bootstrap.sh does, and to the log file, unless the disk is full.
exec 3>&1
log() { printf '%s bootstrap: %s\n' "$(date -u +%H:%M:%S)" "$*" | tee -a "$LOGS/bootstrap.log" 2>/dev/null >&3 || true; }

die() {
  log "$*"
  printf '%s\n' "$*" >&2
  exit 1
}

# read_recipe --recipe NAME: reads the recipe of an image from the rest of main's arguments.
read_recipe() {
  [[ ${1:-} == --recipe && ${2:-} =~ ^(gpu|volta|neuron|cpu)$ && $# == 2 ]] || die "$USAGE"
  RECIPE="$2" PARTITION="" NODE_TYPE=Image
  # shellcheck source=/dev/null
  WORKLOADS="$(source "$BUNDLE/image.env" && printf '%s' "${WORKLOADS:-}")"
}

# Reads the node's recipe and workloads from its partition's file.
read_node() {
  RECIPE=cpu PARTITION="" WORKLOADS="" # for head and login nodes
  [[ ${NODE_TYPE:-} =~ ^(HeadNode|ComputeFleet|LoginNode)$ ]] || die "unknown node type '${NODE_TYPE:-}'"
  if [[ $NODE_TYPE != ComputeFleet ]]; then return; fi
  local -a partitions=("$BUNDLE"/partitions/*.env)
  if [[ -r $CFNCONFIG ]]; then
    PARTITION="$(source "$CFNCONFIG" && printf '%s' "${cfn_scheduler_queue_name:-}")"
    [[ -n $PARTITION ]] || die "$CFNCONFIG names no partition: cfn_scheduler_queue_name is missing"
  elif ((${#partitions[@]} == 1)); then
    PARTITION="$(basename "${partitions[0]}" .env)"
  fi
  local -r settings="$BUNDLE/partitions/$PARTITION.env"
  [[ -n $PARTITION ]] || return 0 # a rehearsal's node of several partitions: the recipe that suits all of them
  [[ -r $settings ]] || die "the bundle has no settings of the partition '$PARTITION' ($settings)"
  RECIPE="$(source "$settings" && printf '%s' "${IMAGE_RECIPE:?is not in $settings}")"
  WORKLOADS="$(source "$settings" && printf '%s' "${WORKLOADS:-}")"
}

os_name() {
  # shellcheck source=/dev/null
  source "$TRAINING_ROOT/etc/os-release" 2>/dev/null || source /etc/os-release
  case "$ID${VERSION_ID:-}" in
    ubuntu22.04) printf 'ubuntu2204\n' ;;
    ubuntu24.04) printf 'ubuntu2404\n' ;;
    amzn2023) printf 'alinux2023\n' ;;
    *) printf 'other\n' ;;
  esac
}

# read_header FILE: reads its `# Name: value` lines into `header`. The synth refuses wrong ones.
read_header() {
  local line
  header=([Moment]=install [Recipes]=all [Nodes]=all [Where]=node [Required]=yes)
  if [[ ${1##*/} == [6-9]* ]]; then header[Moment]=start; fi
  while IFS= read -r line && [[ $line == \#* ]]; do
    if [[ $line =~ ^\#\ (Moment|Recipes|Nodes|Where|Required|Budget|Metrics|Reads):\ (.+)$ ]]; then
      header[${BASH_REMATCH[1]}]="${BASH_REMATCH[2]}"
    fi
  done <"$1"
}

# has LIST WORD: true if a list of words is `all` or contains the word.
has() { [[ $1 == all || " $1 " == *" $2 "* ]]; }

# applies: true if the step whose header was read runs at this moment, on a node of this type. Clusters of all stores of metrics
# share an image.
applies() {
  has "${header[Nodes]}" "${NODE_TYPE/Image/ComputeFleet}" && has "${header[Recipes]}" "$RECIPE" &&
    { [[ $NODE_TYPE == Image ]] || has "${header[Metrics]:-all}" "$METRICS"; } &&
    [[ $MOMENT == start || $MOMENT == refresh || ${header[Moment]} != start ]]
}

# stamp_of FILE: prints a checksum of the step and its inputs: the settings and pins that it names, and the files of
# the bundle that its header lists.
stamp_of() {
  local text pair name file workload
  text="$(<"$1")"
  {
    printf '%s\n' "$text" "RECIPE=$RECIPE" "OS=$OS"
    while read -r _ pair; do
      name="${pair%%=*}"
      if [[ $text =~ (^|[^A-Z0-9_])"$name"($|[^A-Z0-9_]) ]]; then printf '%s\n' "$pair"; fi
    done <"$BUNDLE/versions.env"
    if [[ $text == *WORKLOADS* ]]; then printf '%s\n' "WORKLOADS=$WORKLOADS"; fi
    # shellcheck disable=SC2086  # patterns
    for file in $(cd "$BUNDLE" && printf '%s\n' ${header[Reads]:-}); do
      workload="${file#training/}" # an image has no files of other workloads
      if [[ $file == training/*/* ]] && ! has "$WORKLOADS" "${workload%%/*}"; then continue; fi
      printf '%s\n' "$file"
      cat "$BUNDLE/$file"
    done
  } | sha256sum | cut -d' ' -f1
}

# full_disk: names a disk with hardly any space left, since a program's own message about it may be missing.
full_disk() {
  local folder
  local -i mib
  for folder in "$TRAINING_STATE" "$TRAINING_OPT" /tmp; do
    mib="$(df --block-size=1M --output=avail "$folder" 2>/dev/null | tail -n 1)" || continue
    if ((mib < 64)); then
      printf 'the disk of %s has %s MiB left' "$folder" "$mib"
      return
    fi
  done
  return 1
}

# run STEP NAME: runs a step within its budget. Sets status, its exit status; took, in seconds; said, its last line.
run() {
  local -r budget="${header[Budget]%% *}" output="$LOGS/.$2.output"
  local -r started=$SECONDS
  local full
  set +e # the step's own status counts; a log that cannot be written is not a failure
  timeout --kill-after=10 "$budget" bash "$1" </dev/null 2>&1 | tee "$output" >&3
  status=${PIPESTATUS[0]}
  set -e
  took=$((SECONDS - started))
  said="$(grep -v '^[[:space:]]*$' "$output" 2>/dev/null | tail -n 1)" || said="it printed nothing"
  if ((status == 124 || status == 137)); then said="it took more than its $budget s"; fi
  if ((status)) && full="$(full_disk)"; then said="$full: $said"; fi
  rm -f "$output"
}

# is_skipped NAME STAMP: true if an install or image step need not or must not run; logs why, and counts missing steps.
is_skipped() {
  local -r kept="$TRAINING_STATE/stamps/$1"
  if [[ -r $kept && $(<"$kept") == "$2" ]]; then
    log "step $1: skipped (done before)"
  elif [[ $MOMENT == check ]]; then
    log "step $1: not done"
    if [[ ${header[Required]} == yes ]]; then missing+=1; fi
  elif [[ $MOMENT == refresh ]]; then
    log "step $1: skipped (a job waits; the next node that starts does it)"
  elif [[ $MOMENT == start && ${header[Moment]} == image ]]; then
    log "step $1: skipped (only in a built image: -c image=build)"
  else
    return 1
  fi
}

# run_if_due STEP: runs a step, or logs why not. Ends the run if a required step failed.
run_if_due() {
  local name stamp="" status took said
  name="$(basename "$1" .sh)"
  read_header "$1"
  applies || return 0
  if [[ $NODE_TYPE != Image && ${header[Where]} == node && ! -e $CFNCONFIG ]]; then
    log "step $name: skipped (this is no ParallelCluster node)"
    return
  fi
  if [[ ${header[Moment]} != start ]]; then
    stamp="$(stamp_of "$1")"
    if is_skipped "$name" "$stamp"; then return; fi
  fi
  run "$1" "$name"
  if ((status == 0)); then
    if [[ -n $stamp ]]; then
      printf '%s\n' "$stamp" >"$TRAINING_STATE/stamps/.$name"
      mv -f "$TRAINING_STATE/stamps/.$name" "$TRAINING_STATE/stamps/$name"
    fi
    log "step $name: done, $took s"
  elif [[ ${header[Required]} == no ]]; then
    log "step $name: failed, optional, $took s: $said"
  else
    die "step $name failed after $took s: $said"
  fi
}

main() {
  local step
  local -r started=$SECONDS
  case $MOMENT in
    start | refresh) read_node ;;
    image | check) read_recipe "${@:2}" ;;
    *) die "$USAGE" ;;
  esac
  mkdir -p "$LOGS" "$TRAINING_STATE/stamps"
  OS="$(os_name)"
  export NODE_TYPE RECIPE PARTITION WORKLOADS OS MOMENT METRICS=cloudwatch
  # shellcheck source=/dev/null
  source "$BUNDLE/versions.env"
  if [[ -e $BUNDLE/metrics.env ]]; then # an image has none
    # shellcheck source=/dev/null
    source "$BUNDLE/metrics.env"
  fi
  log "$MOMENT: $NODE_TYPE, recipe $RECIPE${PARTITION:+, partition $PARTITION}"
  for step in "$BUNDLE"/bootstrap/steps/*.sh; do
    run_if_due "$step"
  done
  ((missing == 0)) || die "$missing steps are not done: see the lines above"
  log "all steps: $((SECONDS - started)) s"
}

main "$@"
