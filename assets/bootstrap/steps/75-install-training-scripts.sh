#!/usr/bin/env bash
#
# Installs the bundle's training scripts in the shared folder, on the head node.
#
# Every user may create files in that folder (ParallelCluster gives /fsx the mode 1777), and runs the scripts of
# training/. So the scripts are copied to a folder that only root can read, and files of others in their place are
# moved away.
#
# Called by: run-steps.sh, as root. Environment: NODE_TYPE, BUNDLE, TRAINING_SHARED.
# Safe to run again. The new folder replaces the old one by two renames, since Lustre cannot exchange two folders: a
#   job that starts in the instant between them finds no scripts, and reports this.
# Moment: start
# Recipes: all
# Nodes: HeadNode
# Where: any
# Required: yes
# Budget: 30 s
set -euo pipefail
shopt -s inherit_errexit

[[ $NODE_TYPE == HeadNode ]] || exit 0

umask 022
readonly ATTEMPTS=20
readonly target="$TRAINING_SHARED/training"
mkdir -p "$TRAINING_SHARED"
# Removes folders that a killed run left, but none of other users.
find "$TRAINING_SHARED" -maxdepth 1 -name '.training-*' -uid "$EUID" -exec rm -rf {} +
fresh="$(mktemp -d "$TRAINING_SHARED/.training-XXXXXX")"
readonly fresh
trap 'rm -rf "$fresh"' EXIT

# is_installed: true if the scripts are the same, and root owns all of them.
is_installed() {
  [[ -d $target && ! -L $target && -z $(find "$target" ! -uid "$EUID" -print -quit) ]] &&
    diff -rq "$fresh/training" "$target" >/dev/null 2>&1
}

# replace_scripts: replaces the folder, again if a user creates it between the two renames.
replace_scripts() {
  local attempt
  for ((attempt = 1; attempt <= ATTEMPTS; attempt++)); do
    if [[ -e $target || -L $target ]]; then mv -T "$target" "$fresh/old-$attempt"; fi
    if mv -T "$fresh/training" "$target" 2>/dev/null; then return; fi
  done
  printf 'could not install %s: %s creates it again and again\n' "$target" "$(stat --format %U "$target")" >&2
  return 1
}

cp -R "$BUNDLE/training" "$fresh/training"
if ! is_installed; then replace_scripts; fi
