#!/usr/bin/env bash
#
# Prepares a node of the cluster: fetches the bundle that the cluster config names from the bucket, verifies
# it and runs its steps.
#
#   bootstrap.sh s3://BUCKET/bootstrap/CLUSTER [bundle-sha256=HEX]
#
# Called by: ParallelCluster, as root: OnNodeConfigured of every node; OnNodeUpdated of the head node, whose
#   second argument the cluster config has for all nodes. On a node that missed an update: prolog.sh (compute nodes),
#   and the timer of steps/85-start-timers.sh (head and login nodes).
# Safe to run again: steps change only what differs; a bundle is unpacked beside the old one and
#   replaces it in one rename. An unpacked bundle is not fetched again. A second run waits until the first one ends.
#
# Environment:
#   NODE_TYPE                HeadNode, ComputeFleet or LoginNode; default: what ParallelCluster wrote in cfnconfig
#   BOOTSTRAP_MOMENT         start (default), or refresh on a running node: see run-steps.sh. follow: like start, but
#                            only if the cluster config has named another bundle than this node's for some minutes
#   TRAINING_CLUSTER_CONFIG  the cluster config; default: ParallelCluster's own in its shared folder
#   TRAINING_SHARED    shared folder on Lustre, default /fsx
#   TRAINING_EFS       shared folder on EFS, default /efs
#   TRAINING_ETC       settings of the node, default /etc/training-cluster
#   TRAINING_ROOT      prefix of all other paths that are written to; default none
#   TRAINING_BUNDLES   unpacked bundles, default $TRAINING_ROOT/opt/training-cluster/bundles
set -euo pipefail
# Without this option a command that fails within $(...) is ignored.
shopt -s inherit_errexit

readonly USAGE="usage: bootstrap.sh s3://BUCKET/bootstrap/CLUSTER [bundle-sha256=HEX]"
readonly SOURCE="${1:?$USAGE}"
readonly CHECKSUM='bundle-sha256=([0-9a-f]{64})'
readonly FULL_KIB=1024
readonly MOMENT="${BOOTSTRAP_MOMENT:-start}"
# LOCK_S is the limit of the timer's run. An update writes the cluster config and runs OnNodeUpdated minutes later, so
# the timer waits SETTLED_MIN.
readonly LOCK_S=900 SETTLED_MIN=10
export TRAINING_SHARED="${TRAINING_SHARED:-/fsx}"
export TRAINING_EFS="${TRAINING_EFS:-/efs}"
export TRAINING_ROOT="${TRAINING_ROOT:-}"
export TRAINING_ETC="${TRAINING_ETC:-/etc/training-cluster}"
export TRAINING_BUNDLES="${TRAINING_BUNDLES:-$TRAINING_ROOT/opt/training-cluster/bundles}"
readonly CFNCONFIG="$TRAINING_ROOT/etc/parallelcluster/cfnconfig"
readonly LOG="$TRAINING_ROOT/var/log/training-cluster/bootstrap.log" LOCK="$TRAINING_ROOT/run/training-cluster.lock"

# ParallelCluster stores a script's stdout in cfn-init.log of a head node and in cloud-init-output of the others. It
# drops a head node's stderr, and shows a compute node's in the event of the failure. So all lines go to stdout, which
# is 3 here, since functions return values on theirs; the reason of a failure goes to both. Lines also go to the
# bootstrap's own log, once the first run has made its folder: a timer's output is otherwise only in the journal.
exec 3>&1
log() { printf '%s bootstrap: %s\n' "$(date -u +%H:%M:%S)" "$*" | tee -a "$LOG" 2>/dev/null >&3 || true; }

die() {
  log "$*"
  printf '%s\n' "$*" >&2
  exit 1
}

node_type() {
  if [[ -z ${NODE_TYPE:-} && -r $CFNCONFIG ]]; then
    NODE_TYPE="$(source "$CFNCONFIG" && printf '%s' "${cfn_node_type:-}")"
  fi
  [[ ${NODE_TYPE:-} == HeadNode || ${NODE_TYPE:-} == ComputeFleet || ${NODE_TYPE:-} == LoginNode ]] ||
    die "unknown node type '${NODE_TYPE:-}': neither NODE_TYPE nor $CFNCONFIG names one"
  printf '%s\n' "$NODE_TYPE"
}

# Prints the path of ParallelCluster's cluster config for a node of this type.
cluster_config() {
  local folder=shared
  if [[ $NODE_TYPE == LoginNode ]]; then folder=shared_login_nodes; fi
  printf '%s\n' "${TRAINING_CLUSTER_CONFIG:-$TRAINING_ROOT/opt/parallelcluster/$folder/cluster-config.yaml}"
}

# expected_sha256 [ARGUMENT]: prints the checksum of the bundle that nodes are to run. It is never stored beside the
# bundle: whoever can change the bundle could change it too.
expected_sha256() {
  local config
  config="$(cluster_config)"
  if [[ -n ${1:-} ]]; then
    [[ $1 =~ ^$CHECKSUM$ ]] || die "'$1' is not a checksum: $USAGE"
  else
    [[ -r $config ]] || die "the cluster config $config is missing: the bundle to run is unknown"
    [[ $(<"$config") =~ $CHECKSUM ]] ||
      die "$config names no bundle: its HeadNode's OnNodeUpdated has no argument bundle-sha256=..."
  fi
  printf '%s\n' "${BASH_REMATCH[1]}"
}

# fetch NAME FILE: downloads an object of the bucket, with retries. A start retries for some four minutes, each node at
# other times: ParallelCluster replaces a node that fails, and stops a partition of which enough nodes fail.
fetch() {
  local -i attempt attempts=5 step=1 jitter=0
  if [[ $MOMENT == start ]]; then attempts=9 step=5 jitter=$((RANDOM % 10)); fi
  for attempt in $(seq "$attempts"); do
    if aws s3 cp --only-show-errors "$SOURCE/$1" "$2"; then return 0; fi
    (($(df --output=avail "$(dirname "$2")" | tail -n 1) > FULL_KIB)) || die "no space left on the disk of $2"
    log "could not fetch $SOURCE/$1, attempt $attempt of $attempts"
    sleep "$((attempt * step + jitter))"
  done
  die "gave up on $SOURCE/$1: does the object exist, and may this node read it?"
}

# unpack SHA256: verifies the bundle and unpacks it to its folder.
unpack() {
  local -r sha256="$1" target="$TRAINING_BUNDLES/$1"
  local fresh actual
  if [[ -d $target ]]; then return; fi
  mkdir -p "$TRAINING_BUNDLES"
  fresh="$(mktemp -d "$TRAINING_BUNDLES/.fetch-XXXXXX")"
  # shellcheck disable=SC2064  # expands now, to this folder
  trap "rm -rf '$fresh'" EXIT
  fetch "bundle-$sha256.tar.gz" "$fresh/bundle.tar.gz"
  actual="$(sha256sum "$fresh/bundle.tar.gz" | cut -d' ' -f1)"
  [[ $actual == "$sha256" ]] ||
    die "$SOURCE/bundle-$sha256.tar.gz is not the bundle of the cluster config: its SHA-256 is $actual"
  mkdir "$fresh/unpacked"
  tar -xzf "$fresh/bundle.tar.gz" -C "$fresh/unpacked" --no-same-owner ||
    die "the bundle could not be unpacked in $TRAINING_BUNDLES: is its disk full?"
  chmod 755 "$fresh/unpacked"
  # Two jobs' prologs may run at a time: the second one then finds the folder of the first, with the same content.
  mv -T "$fresh/unpacked" "$target" 2>/dev/null || [[ -d $target ]] || die "could not make $target"
}

# lock: waits for the end of another bootstrap.sh; fails at once if the timer runs this one, since it runs again.
lock() {
  if [[ $MOMENT == follow ]]; then
    flock --nonblock 9
  else
    flock --timeout "$LOCK_S" 9 || die "another bootstrap.sh runs on this node, and did not end within $LOCK_S s"
  fi
}

# is_behind SHA256: true if the node runs another bundle, and no update is about to install this one.
is_behind() {
  local settled
  if [[ $(readlink "$TRAINING_BUNDLES/current") == "$1" ]]; then return 1; fi
  settled="$(find "$(cluster_config)" -mmin "+$SETTLED_MIN")"
  [[ -n $settled ]]
}

main() {
  local sha256
  NODE_TYPE="$(node_type)"
  export NODE_TYPE
  sha256="$(expected_sha256 "${2:-}")"
  mkdir -p "$(dirname "$LOCK")"
  exec 9>>"$LOCK"
  lock || return 0
  if [[ $MOMENT == follow ]]; then
    if ! is_behind "$sha256"; then return; fi
    log "this node missed an update or a rollback: it runs $(readlink "$TRAINING_BUNDLES/current")"
  fi
  unpack "$sha256"
  mkdir -p "$TRAINING_ETC"
  printf '%s\n' "$SOURCE" >"$TRAINING_ETC/bootstrap-arguments"
  log "$NODE_TYPE runs the bundle $sha256"
  # Without the lock, since a process that a step leaves running would keep it.
  BUNDLE="$TRAINING_BUNDLES/$sha256" \
    bash "$TRAINING_BUNDLES/$sha256/bootstrap/run-steps.sh" "${MOMENT/follow/start}" 9>&-
  # At the end, since prolog.sh reads this link, and a bundle whose steps failed must be tried again.
  ln -sfn "$sha256" "$TRAINING_BUNDLES/.current-$$"
  mv -T "$TRAINING_BUNDLES/.current-$$" "$TRAINING_BUNDLES/current"
}

main "$@"
