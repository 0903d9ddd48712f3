#!/usr/bin/env bash
#
# Links the other paths of the shared folders, such as /lustre for /fsx, on every node. A file system can be mounted
# only once, so these paths are links.
#
# It runs before 70-create-shared-folders.sh, which would create a folder in the place of such a link (/efs, with
# home=efs). The target of a link exists before the link: the head node creates it here, and other nodes start when the
# head node has run all its steps.
#
# Called by: run-steps.sh, as root. Environment: BUNDLE, NODE_TYPE, TRAINING_ROOT. Safe to run again. An
#   existing path that is not a link stays unchanged and is reported.
# Moment: start
# Recipes: all
# Nodes: all
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
