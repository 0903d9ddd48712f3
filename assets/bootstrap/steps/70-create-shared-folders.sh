#!/usr/bin/env bash
#
# Creates the folders of the shared file systems that jobs write to, once, on the head node.
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

# As /tmp: every user of the cluster may write, and only the owner may delete.
make_open() {
  mkdir -p "$1"
  chmod 1777 "$1"
}

make_open "$TRAINING_SHARED/venvs"
# An EFS that has anything in it is somebody's: its root stays as it is.
if [[ ! -d $TRAINING_EFS || -z "$(ls -A "$TRAINING_EFS")" ]]; then make_open "$TRAINING_EFS"; fi
for folder in datasets checkpoints runs; do
  make_open "$TRAINING_SHARED/$folder"
  for workload in "$BUNDLE"/training/*/; do
    make_open "$TRAINING_SHARED/$folder/$(basename "$workload")"
  done
done
