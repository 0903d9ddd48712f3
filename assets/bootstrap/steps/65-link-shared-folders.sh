#!/usr/bin/env bash
#
# Links the other paths of the shared folders, such as /lustre for /fsx, on every node. The same file
# system can be mounted only once, so these are links.
#
# Before 70-create-shared-folders.sh, since a folder of it may be one of these links (/efs is, with home=efs): made
# as a folder, it would stand in the link's place. What a link leads to stands before the link: the head node makes
# it here, and other nodes start when the head node has run all its steps.
#
# Called by: run-steps.sh, as root. Environment: BUNDLE, NODE_TYPE, TRAINING_ROOT. Safe to run again. What
#   stands there already, and is no link, is left alone and said.
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
    printf '%s is there already: not linked to %s\n' "$path" "$folder" >&2
    continue
  fi
  mkdir -p "$(dirname "$path")"
  # A link may lead into a folder of a shared file system, which the head node makes.
  if [[ $NODE_TYPE == HeadNode && ! -L $TRAINING_ROOT$folder ]]; then mkdir -p "$TRAINING_ROOT$folder"; fi
  ln -sfn "$folder" "$path"
done <"$BUNDLE/links"
