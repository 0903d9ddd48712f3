#!/usr/bin/env bash
#
# Links the other paths of the shared folders, such as /lustre for /fsx, on every node. The same file
# system can be mounted only once, so these are links.
#
# Called by: bootstrap.sh, as root. Environment: BUNDLE, TRAINING_ROOT. Safe to run again. What
#   stands there already, and is no link, is left alone and said.
# Budget: 5 s
set -euo pipefail

while read -r link folder; do
  path="$TRAINING_ROOT$link"
  if [[ -e $path && ! -L $path ]]; then
    printf '%s is there already: not linked to %s\n' "$path" "$folder" >&2
    continue
  fi
  mkdir -p "$(dirname "$path")"
  ln -sfn "$folder" "$path"
done <"$BUNDLE/links"
