#!/usr/bin/env bash
#
# Prepares a node of the cluster: fetches the bundle of this cluster's scripts from the bucket,
# verifies it and runs its numbered steps.
#
#   bootstrap.sh s3://BUCKET/bootstrap/CLUSTER [SHA256]
#
# Called by: ParallelCluster, as root: OnNodeConfigured of every node, OnNodeUpdated of the head
#   node, where SHA256 names the bundle that the update is about.
# Safe to run again: steps change only what differs; a bundle is unpacked beside the old one and
#   takes its place in one rename.
#
# Environment:
#   NODE_TYPE          HeadNode or ComputeFleet; default: what ParallelCluster wrote in cfnconfig
#   TRAINING_SHARED    shared folder on Lustre, default /fsx
#   TRAINING_EFS       shared folder on EFS, default /efs
#   TRAINING_ETC       settings of the node, default /etc/training-cluster
#   TRAINING_BUNDLES   unpacked bundles, default /opt/training-cluster
#   TRAINING_ROOT      stands before other paths that steps write to; default none
set -euo pipefail
# Without it a command that fails within $(...) is passed over.
shopt -s inherit_errexit

readonly SOURCE="${1:?usage: bootstrap.sh s3://BUCKET/bootstrap/CLUSTER [SHA256]}"
readonly EXPECTED_SHA256="${2:-}"
readonly CFNCONFIG=/etc/parallelcluster/cfnconfig
readonly ATTEMPTS=5

log() { printf '%s bootstrap: %s\n' "$(date -u +%H:%M:%S)" "$*" >&2; }

# ParallelCluster shows the last line of a failed script.
die() {
  log "$*"
  exit 1
}

node_type() {
  if [[ -z ${NODE_TYPE:-} && -r $CFNCONFIG ]]; then
    # shellcheck source=/dev/null
    NODE_TYPE="$(source "$CFNCONFIG" && printf '%s' "${cfn_node_type:-}")"
  fi
  [[ ${NODE_TYPE:-} == HeadNode || ${NODE_TYPE:-} == ComputeFleet || ${NODE_TYPE:-} == LoginNode ]] ||
    die "unknown node type '${NODE_TYPE:-}': neither NODE_TYPE nor $CFNCONFIG names one"
  printf '%s\n' "$NODE_TYPE"
}

# fetch NAME FOLDER
fetch() {
  local attempt
  for attempt in $(seq "$ATTEMPTS"); do
    if aws s3 cp --only-show-errors "$SOURCE/$1" "$2/$1"; then return 0; fi
    log "could not fetch $SOURCE/$1, attempt $attempt of $ATTEMPTS"
    sleep "$attempt"
  done
  die "gave up on $SOURCE/$1: is the object there, and may this node read it?"
}

verify() {
  local actual
  actual="$(sha256sum "$1/bundle.tar.gz" | cut -d' ' -f1)"
  grep -q "^$actual " "$1/bundle.tar.gz.sha256" ||
    die "bundle.tar.gz is damaged: its SHA-256 $actual is not the one beside it"
  if [[ -n $EXPECTED_SHA256 && $EXPECTED_SHA256 != "$actual" ]]; then
    die "$SOURCE holds another bundle ($actual) than the one asked for ($EXPECTED_SHA256)"
  fi
  printf '%s\n' "$actual"
}

# Prints the folder of the verified, unpacked bundle.
unpack() {
  local fresh sha256 target
  mkdir -p "$TRAINING_BUNDLES"
  fresh="$(mktemp -d "$TRAINING_BUNDLES/.fetch-XXXXXX")"
  # shellcheck disable=SC2064  # the folder of now
  trap "rm -rf '$fresh'" EXIT
  fetch bundle.tar.gz "$fresh"
  fetch bundle.tar.gz.sha256 "$fresh"
  sha256="$(verify "$fresh")"
  target="$TRAINING_BUNDLES/$sha256"
  if [[ ! -d $target ]]; then
    mkdir "$fresh/unpacked"
    tar -xzf "$fresh/bundle.tar.gz" -C "$fresh/unpacked" --no-same-owner
    chmod 755 "$fresh/unpacked"
    mv -T "$fresh/unpacked" "$target"
  fi
  printf '%s\n' "$target"
}

main() {
  local bundle step started
  NODE_TYPE="$(node_type)"
  export NODE_TYPE
  export TRAINING_SHARED="${TRAINING_SHARED:-/fsx}"
  export TRAINING_EFS="${TRAINING_EFS:-/efs}"
  export TRAINING_ROOT="${TRAINING_ROOT:-}"
  export TRAINING_ETC="${TRAINING_ETC:-/etc/training-cluster}"
  export TRAINING_BUNDLES="${TRAINING_BUNDLES:-/opt/training-cluster}"
  bundle="$(unpack)"
  log "$NODE_TYPE runs the bundle $(basename "$bundle")"
  for step in "$bundle"/bootstrap/steps/*.sh; do
    started=$SECONDS
    BUNDLE="$bundle" bash "$step" || die "step $(basename "$step") failed"
    log "step $(basename "$step" .sh): done, $((SECONDS - started)) s"
  done
}

main
