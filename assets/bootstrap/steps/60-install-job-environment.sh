#!/usr/bin/env bash
#
# Installs the facts about nodes that jobs read, one file for each Slurm partition, on every node.
#
# It adds TRAINING_BUCKET, the cluster's bucket, to the bundle's file: bootstrap.sh stores the URL that its bundle came
# from. The variable is empty if the bundle came from no bucket.
#
# Called by: run-steps.sh, as root. Environment: BUNDLE, TRAINING_ETC. Safe to run again.
# Moment: start
# Recipes: all
# Nodes: all
# Where: any
# Required: yes
# Budget: 5 s
set -euo pipefail

bucket=""
if [[ -r $TRAINING_ETC/bootstrap-arguments && $(<"$TRAINING_ETC/bootstrap-arguments") =~ ^s3://([^/[:space:]]+) ]]; then
  bucket="${BASH_REMATCH[1]}"
fi
mkdir -p "$TRAINING_ETC/partitions"
for file in "$BUNDLE"/partitions/*.env; do
  name="$(basename "$file")"
  # A rename, so that a job that starts now reads the whole old file or the whole new one.
  install -m 644 "$file" "$TRAINING_ETC/partitions/.$name.new"
  printf "export TRAINING_BUCKET='%s'\n" "$bucket" >>"$TRAINING_ETC/partitions/.$name.new"
  mv -f "$TRAINING_ETC/partitions/.$name.new" "$TRAINING_ETC/partitions/$name"
done
