#!/usr/bin/env bash
#
# Creates the folders of the shared file systems that jobs write to, once, on the head node, and in each workload's
# folder of data the file that its jobs lock.
#
# Users may create files in these folders, and in /fsx itself. So what has one of these names already and is not root's
# is somebody's: it stays as it is and is reported, since a folder that its owner closed must not be opened, a link must
# not be followed, and no user's file may end a deploy.
#
# Called by: run-steps.sh, as root. Environment: NODE_TYPE, BUNDLE, TRAINING_SHARED, TRAINING_EFS. Safe to run again:
#   it never touches what is in them.
# Moment: start
# Recipes: all
# Nodes: HeadNode
# Where: any
# Required: yes
# Budget: 10 s
set -euo pipefail

[[ $NODE_TYPE == HeadNode ]] || exit 0

# is_there PATH: also a link that leads nowhere.
is_there() { [[ -e $1 || -L $1 ]]; }

# is_ours PATH: whether it is root's; of a link, the link itself. Nobody else can move it away, as all folders above it
# are root's, and sticky where others may write.
is_ours() { [[ $(stat --format %u "$1") == "$EUID" ]]; }

report_foreign() {
  printf '%s is there already and belongs to %s: it stays as it is, and jobs of other users may fail there\n' "$1" \
    "$(stat --format %U "$1")" >&2
}

# make_open FOLDER: as /tmp: every user of the cluster may write, and only the owner may delete.
make_open() {
  if ! is_there "$1"; then mkdir "$1"; fi
  if is_ours "$1" && [[ -d $1 ]]; then chmod 1777 "$1"; else report_foreign "$1"; fi
}

# make_lock FILE: for all users, and before their jobs: in a sticky folder nobody may open another user's file as if to
# create it (fs.protected_regular), unless it belongs to the folder's owner.
make_lock() {
  if ! is_there "$1"; then (umask 0 && set -o noclobber && : >"$1"); fi
  if ! is_ours "$1"; then report_foreign "$1"; fi
}

mkdir -p "$TRAINING_SHARED" "$(dirname "$TRAINING_EFS")"
make_open "$TRAINING_SHARED/venvs"
# An EFS that has anything in it is somebody's: its root stays as it is.
if [[ ! -d $TRAINING_EFS || -z "$(ls -A "$TRAINING_EFS")" ]]; then make_open "$TRAINING_EFS"; fi
for folder in datasets checkpoints runs; do
  make_open "$TRAINING_SHARED/$folder"
  for workload in "$BUNDLE"/training/*/; do
    make_open "$TRAINING_SHARED/$folder/$(basename "$workload")"
  done
done
for workload in "$BUNDLE"/training/*/; do
  data="$TRAINING_SHARED/datasets/$(basename "$workload")"
  if is_ours "$data" && [[ -d $data ]]; then make_lock "$data/.prepare.lock"; fi
done
