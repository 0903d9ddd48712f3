#!/usr/bin/env bash
#
# Creates the folders of the shared file system that jobs write to, once, on the head node.
#
# Called by: bootstrap.sh, as root. Environment: NODE_TYPE, TRAINING_SHARED. Safe to run again:
#   it never touches what is in them.
set -euo pipefail

[[ $NODE_TYPE == HeadNode ]] || exit 0

for folder in datasets checkpoints runs venvs; do
  mkdir -p "$TRAINING_SHARED/$folder"
  # As /tmp: every user of the cluster may write, and only the owner may delete.
  chmod 1777 "$TRAINING_SHARED/$folder"
done
