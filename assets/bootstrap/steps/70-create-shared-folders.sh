#!/usr/bin/env bash
#
# Creates the shared folders that jobs write to, on the head node, and a lock file for jobs in each workload's data
# folder.
#
# Users may create files in these folders, and in /fsx itself, so an existing path that does not belong to root was
# created by a user. The step reports it and leaves it unchanged: it must not open a folder that its owner closed, must
# not follow a user's link, and must not let a user's file fail a deploy.
#
# Called by: run-steps.sh, as root. Environment: NODE_TYPE, BUNDLE, TRAINING_SHARED, TRAINING_EFS. Safe to run again:
#   it never changes their contents.
# Moment: start
# Recipes: all
# Nodes: HeadNode
# Where: any
# Required: yes
# Budget: 10 s
set -euo pipefail

[[ $NODE_TYPE == HeadNode ]] || exit 0

# path_exists PATH: true also for a link without a target.
path_exists() { [[ -e $1 || -L $1 ]]; }

# is_ours PATH: true if root owns the path, or the link itself. No other user can move such a path: all parent folders
# belong to root, and are sticky if others may write to them.
is_ours() { [[ $(stat --format %u "$1") == "$EUID" ]]; }

report_foreign() {
  printf '%s exists already and belongs to %s: it stays unchanged, and jobs of other users may fail there\n' "$1" \
    "$(stat --format %U "$1")" >&2
}

# make_world_writable FOLDER: creates it with mode 1777: every user may create files, and only the owner may delete them.
make_world_writable() {
  # A user may create it at the same time.
  if ! path_exists "$1"; then mkdir "$1" || path_exists "$1"; fi
  if is_ours "$1" && [[ -d $1 ]]; then chmod 1777 "$1"; else report_foreign "$1"; fi
}

# make_lock FILE: creates a lock file for all users, before a job does: in a sticky folder no user may open another user's
# file with O_CREAT (fs.protected_regular), unless the file belongs to the folder's owner.
make_lock() {
  if ! path_exists "$1"; then (umask 0 && set -o noclobber && : >"$1"); fi
  if ! is_ours "$1"; then report_foreign "$1"; fi
}

# make_environments FOLDER: creates the folder of the environments for all users. Only the cluster's default user may
# write to it, since jobs run the code in it. On a cluster with several users, each user has another folder.
make_environments() {
  local user
  user="$(sed -n 's/^cfn_cluster_user=//p' "$TRAINING_ROOT/etc/parallelcluster/cfnconfig" 2>/dev/null || true)"
  if ! path_exists "$1"; then mkdir "$1"; fi
  if [[ -d $1 && ! -L $1 ]] && { is_ours "$1" || [[ $(stat --format %U "$1") == "$user" ]]; }; then
    chmod 755 "$1"
    chown -h "${user:-$EUID}" "$1"
  else
    report_foreign "$1"
  fi
}

mkdir -p "$TRAINING_SHARED" "$(dirname "$TRAINING_EFS")"
if [[ -d $BUNDLE/users ]]; then
  make_environments "$TRAINING_SHARED/venvs"
else
  make_world_writable "$TRAINING_SHARED/venvs"
fi
make_world_writable "$TRAINING_SHARED/images"
# The mode of an EFS that is not empty stays unchanged, since the EFS may be in use elsewhere.
if [[ ! -d $TRAINING_EFS || -z "$(ls -A "$TRAINING_EFS")" ]]; then make_world_writable "$TRAINING_EFS"; fi
for folder in datasets checkpoints runs; do
  make_world_writable "$TRAINING_SHARED/$folder"
  for workload in "$BUNDLE"/training/*/; do
    make_world_writable "$TRAINING_SHARED/$folder/$(basename "$workload")"
  done
done
for workload in "$BUNDLE"/training/*/; do
  data="$TRAINING_SHARED/datasets/$(basename "$workload")"
  if is_ours "$data" && [[ -d $data ]]; then make_lock "$data/.prepare.lock"; fi
done
