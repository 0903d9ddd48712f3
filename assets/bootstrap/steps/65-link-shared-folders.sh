#!/usr/bin/env bash
#
# Creates the alternative paths of the shared folders, such as /lustre for /fsx, on every node. They are symbolic links,
# since ParallelCluster can mount a file system only once.
#
# It runs before 70-create-shared-folders.sh, which would otherwise create a folder at such a path (/efs, with home=efs).
# The head node creates the target of each link before the link; other nodes start after the head node has run all of
# its steps.
#
# Called by: run-steps.sh, as root. Environment: BUNDLE, NODE_TYPE, TRAINING_ROOT. Safe to run again. An
#   existing path that is not a link stays unchanged and is reported.
# Where: any
# Required: no
# Budget: 5 s
set -euo pipefail

while read -r link folder; do
  path="$TRAINING_ROOT$link"
  if [[ -e $path && ! -L $path ]]; then
    printf '%s exists already: not linked to %s\n' "$path" "$folder" >&2
    continue
  fi
  mkdir -p "$(dirname "$path")"
  # The target may be a folder of a shared file system, which the head node creates.
  if [[ $NODE_TYPE == HeadNode && ! -L $TRAINING_ROOT$folder ]]; then mkdir -p "$TRAINING_ROOT$folder"; fi
  ln -sfn "$folder" "$path"
done <"$BUNDLE/links"
