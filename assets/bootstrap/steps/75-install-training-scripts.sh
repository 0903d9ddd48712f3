#!/usr/bin/env bash
#
# Installs the bundle's training scripts in the shared folder, on the head node.
#
# Every user may create files in that folder (ParallelCluster gives /fsx the mode 1777), and runs the scripts in training/.
# So the step copies the scripts to a folder that only root can write to, and makes training a symbolic link to it. One
# rename replaces the link, so a job always finds a complete set of scripts. No other user can move root's link out of a
# sticky folder, and fs.protected_symlinks lets all users follow a link of the folder's owner.
#
# Called by: run-steps.sh, as root. Environment: NODE_TYPE, BUNDLE, TRAINING_SHARED.
# Safe to run again. The previous deploy's scripts stay until the next deploy, for jobs that still run. A folder at the
#   path of the link, from an older version of this step or from a user, is moved away first, since a rename cannot replace
#   a folder with a link.
# Nodes: HeadNode
# Where: any
# Budget: 20 s
set -euo pipefail
shopt -s inherit_errexit

[[ $NODE_TYPE == HeadNode ]] || exit 0

umask 022
readonly ATTEMPTS=20
readonly target="$TRAINING_SHARED/training"
mkdir -p "$TRAINING_SHARED"
# Removes leftovers of older deploys and of interrupted runs, but no other user's files and not the scripts in use.
current="$(readlink "$target" 2>/dev/null || true)"
readonly current
find "$TRAINING_SHARED" -maxdepth 1 -name '.training-*' -uid "$EUID" ! -name "${current%%/*}" -exec rm -rf {} +
fresh="$(mktemp -d "$TRAINING_SHARED/.training-XXXXXX")"
readonly fresh
trap 'if [[ ! $target -ef $fresh/training ]]; then rm -rf "$fresh"; fi' EXIT

# is_installed: true if the link belongs to root and leads to the same scripts, all of which belong to root.
is_installed() {
  [[ $current == .training-*/training && $(stat --format %u "$target") == "$EUID" ]] &&
    [[ -z $(find "$target/" ! -uid "$EUID" -print -quit) ]] &&
    diff -rq "$fresh/training" "$target/" >/dev/null 2>&1
}

# replace_scripts: replaces the link; tries again if a user creates a folder between the two renames.
replace_scripts() {
  local attempt
  ln -s "$(basename "$fresh")/training" "$fresh/link"
  chmod 755 "$fresh"
  for ((attempt = 1; attempt <= ATTEMPTS; attempt++)); do
    if [[ -d $target && ! -L $target ]]; then mv -T "$target" "$fresh/old-$attempt"; fi
    if mv -fT "$fresh/link" "$target" 2>/dev/null; then
      rm -rf "$fresh"/old-*
      return
    fi
  done
  printf 'could not install %s: %s creates it again and again\n' "$target" "$(stat --format %U "$target")" >&2
  return 1
}

cp -R "$BUNDLE/training" "$fresh/training"
if ! is_installed; then replace_scripts; fi
