#!/usr/bin/env bash
#
# Puts the training scripts of the bundle in the shared folder, on the head node.
#
# Called by: run-steps.sh, as root. Environment: NODE_TYPE, BUNDLE, TRAINING_SHARED.
# Safe to run again. The new folder takes the old one's place by two renames: a job that starts
#   in the instant between them finds no scripts, and says so.
# Moment: start
# Recipes: all
# Nodes: HeadNode
# Where: any
# Required: yes
# Budget: 60 s
set -euo pipefail

[[ $NODE_TYPE == HeadNode ]] || exit 0

readonly target="$TRAINING_SHARED/training" fresh="$TRAINING_SHARED/.training-new"
rm -rf "$fresh"
cp -R "$BUNDLE/training" "$fresh"
if diff -rq "$fresh" "$target" >/dev/null 2>&1; then
  rm -rf "$fresh"
  exit 0
fi
readonly old="$TRAINING_SHARED/.training-old"
rm -rf "$old"
if [[ -d $target ]]; then mv -T "$target" "$old"; fi
mv -T "$fresh" "$target"
rm -rf "$old"
