#!/usr/bin/env bash
#
# Installs what jobs know of the nodes, one file a Slurm partition, on every node.
#
# Called by: run-steps.sh, as root. Environment: BUNDLE, TRAINING_ETC. Safe to run again.
# Moment: start
# Recipes: all
# Nodes: all
# Where: any
# Required: yes
# Budget: 5 s
set -euo pipefail

mkdir -p "$TRAINING_ETC/partitions"
for file in "$BUNDLE"/partitions/*.env; do
  name="$(basename "$file")"
  # A rename, so that a job that starts now reads the old file or the new one, never half of one.
  install -m 644 "$file" "$TRAINING_ETC/partitions/.$name.new"
  mv -f "$TRAINING_ETC/partitions/.$name.new" "$TRAINING_ETC/partitions/$name"
done
