#!/usr/bin/env bash
#
# Puts the training scripts of the bundle in the shared folder, on the head node.
#
# Called by: bootstrap.sh, as root. Environment: NODE_TYPE, BUNDLE, TRAINING_SHARED.
# Safe to run again. A job that runs keeps what it has open: the new folder takes the old one's
#   place by a rename, and the one before it is kept for jobs that started with it.
set -euo pipefail

[[ $NODE_TYPE == HeadNode ]] || exit 0

readonly target="$TRAINING_SHARED/training" fresh="$TRAINING_SHARED/.training-new"
rm -rf "$fresh"
cp -R "$BUNDLE/training" "$fresh"
if diff -rq "$fresh" "$target" >/dev/null 2>&1; then
  rm -rf "$fresh"
  exit 0
fi
if [[ -d $target ]]; then
  rm -rf "$TRAINING_SHARED/.training-old"
  mv -T "$target" "$TRAINING_SHARED/.training-old"
fi
mv -T "$fresh" "$target"
