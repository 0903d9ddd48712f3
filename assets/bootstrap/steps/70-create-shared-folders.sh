#!/usr/bin/env bash
#
# Creates the shared folders that jobs write to, on the head node, and in each workload's data folder a lock file for jobs
# and folders for downloads.
#
# Users may create files in these folders and in /fsx itself, so an existing path may be a user's: the step reports it and
# leaves it unchanged. It must not open a folder that its owner closed, or let a user's file fail a deploy. It follows no
# link, not even root's: FSx takes owners and links below datasets/ from the metadata of the bucket's objects, which every
# job may write.
#
# Called by: run-steps.sh, as root. Environment: NODE_TYPE, BUNDLE, TRAINING_SHARED, TRAINING_EFS. Safe to run again:
#   it never changes their contents.
# Nodes: HeadNode
# Where: any
# Budget: 10 s
set -euo pipefail

[[ $NODE_TYPE == HeadNode ]] || exit 0

# path_exists PATH: true also for a link without a target.
path_exists() { [[ -e $1 || -L $1 ]]; }

# report_foreign PATH
report_foreign() {
  printf '%s exists already as a %s of %s: it stays unchanged, and jobs of other users may fail there\n' "$1" \
    "$(stat --format %F "$1")" "$(stat --format %U "$1")" >&2
}

# enter PATH [USER]: changes into the folder if it belongs to root or USER and is no link; otherwise reports it and fails. It
# checks the folder that it has entered, so nobody can replace the path between the check and a change of the folder.
enter() {
  local -r path="$PWD/$1" named="$(stat --format %d:%i "$1")"
  if { cd -P "$1"; } 2>/dev/null && [[ $(stat --format %d:%i .) == "$named" ]] &&
    [[ $(stat --format %u:%U .) == @("$EUID":*|*:"${2:-}") ]]; then
    return
  fi
  report_foreign "$path"
  return 1
}

# make_world_writable NAME [COMMAND...]: creates the folder NAME in this folder with mode 1777, so that every user may create
# files and only the owner may delete them, and runs the command in it.
make_world_writable() (
  # A user may create it at the same time.
  if ! path_exists "$1"; then mkdir "$1" || path_exists "$1"; fi
  if enter "$1"; then
    chmod 1777 .
    "${@:2}"
  fi
)

# make_workloads [COMMAND...]: creates a folder for each workload in this folder, and runs the command in each.
make_workloads() {
  local workload
  for workload in "$BUNDLE"/training/*/; do make_world_writable "$(basename "$workload")" "$@"; done
}

# make_lock: creates a lock file for all users in this folder, before a job does: in a sticky folder no user may open another
# user's file with O_CREAT (fs.protected_regular), unless the file belongs to the folder's owner.
make_lock() {
  local -r lock=.prepare.lock
  local fresh
  if ! path_exists "$lock"; then
    # A user may create it at the same time: a hard link is never made over an existing path.
    fresh="$(mktemp "$lock.XXXXXX")"
    chmod 666 "$fresh"
    ln -T "$fresh" "$lock" || path_exists "$lock"
    rm "$fresh"
  fi
  if [[ -L $lock || $(stat --format %u "$lock") != "$EUID" ]]; then report_foreign "$PWD/$lock"; fi
}

# make_data_folders: creates what jobs of several users share in this folder of data: the lock, and folders of downloads, each of
# which its first user would close to the others.
make_data_folders() {
  make_lock
  make_world_writable downloads
  make_world_writable models
}

# make_environments NAME: creates the folder of the environments for all users. Only the cluster's default user may write to
# it, since jobs run the code in it. On a cluster with several users, each user has another folder.
make_environments() (
  user="$(sed -n 's/^cfn_cluster_user=//p' "$TRAINING_ROOT/etc/parallelcluster/cfnconfig" 2>/dev/null || true)"
  if ! path_exists "$1"; then mkdir "$1"; fi
  if enter "$1" "$user"; then
    chmod 755 .
    chown "${user:-$EUID}" .
  fi
)

# Only root can write to the folders of these two paths, so it may have made a link (65-link-shared-folders.sh).
efs="$(realpath -m "$TRAINING_EFS")"
mkdir -p "$TRAINING_SHARED" "$(dirname "$efs")"
# The mode of an EFS that is not empty stays unchanged, since the EFS may be in use elsewhere.
if [[ ! -d $efs || -z "$(ls -A "$efs")" ]]; then
  (cd "$(dirname "$efs")" && make_world_writable "$(basename "$efs")")
fi
cd -P "$TRAINING_SHARED"
if [[ -d $BUNDLE/users ]]; then make_environments venvs; else make_world_writable venvs; fi
make_world_writable images
make_world_writable datasets make_workloads make_data_folders
make_world_writable checkpoints make_workloads
make_world_writable runs make_workloads
